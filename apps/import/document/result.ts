import type { Region } from '#domain/contract/regions.ts';
import { type Kind, kindPlurals } from './format.ts';
import type { Changes } from './merge.ts';
import type { Change, PlannedEvents } from './plan.ts';
import type { ImportedOrganization } from './summary.ts';

/** Events and their deliveries by type. */
type EventCounts = Record<string, { events: number; deliveries: number }>;

/** The result of an import, once it is committed, or of a dry run. */
export interface ImportResult {
  fileName: string;
  region: Region;
  /** Whether nothing was written: then it says what an import would do. */
  isDryRun: boolean;
  /** The whole days by which dates were moved; 0 without `today`. */
  shiftedDays: number;
  /** In the order of the file, with the kinds that change, and of a dry run the events. */
  organizations: (ImportedOrganization & { changes: Record<string, Partial<Changes>>; events?: EventCounts })[];
  /** By kind, named like the lists of the format (and `memberRoles`). */
  counts: Record<string, Changes & { unchanged: number }>;
  /** Access of the document that lies ahead, unless there is none: how many grants, and when the first begins. */
  ahead?: { grants: number; beginsOn: string };
  /** Of a complete document: how many objects end because it leaves them out, by kind. */
  ended?: Record<string, number>;
  /** Of a dry run: the events that would be created, by type. */
  events?: EventCounts;
  /** Of a dry run: the first changes, as many as were requested. */
  list?: string[];
}

/** What a result is built from. */
export interface ResultParts
  extends Pick<ImportResult, 'fileName' | 'region' | 'isDryRun' | 'shiftedDays' | 'ahead' | 'ended' | 'list'> {
  organizations: ImportedOrganization[];
  changes: readonly Change[];
  /** Of a dry run. */
  planned?: readonly PlannedEvents[];
  /** How many objects of each kind the document has. */
  staged: ReadonlyMap<Kind, number>;
}

export function buildResult({ organizations, changes, planned, staged, ...parts }: ResultParts): ImportResult {
  return {
    ...parts,
    organizations: organizations.map((organization) => ({
      ...organization,
      changes: countByKind(changes.filter((change) => change.organizationId === organization.id)),
      ...(planned && { events: sumEvents(planned.filter((each) => each.organizationId === organization.id)) }),
    })),
    counts: countAll(changes, staged, parts.ended ?? {}),
    ...(planned && { events: sumEvents(planned) }),
  };
}

function countByKind(changes: readonly Change[]): Record<string, Partial<Changes>> {
  const counts: Record<string, Partial<Changes>> = {};
  for (const { kind, change, rows } of changes) {
    const of = counts[kind] ?? {};
    of[change] = (of[change] ?? 0) + rows;
    counts[kind] = of;
  }
  return counts;
}

/** Returns the counts of every kind, also of those without a change. */
function countAll(
  changes: readonly Change[],
  staged: ReadonlyMap<Kind, number>,
  ended: Record<string, number>,
): ImportResult['counts'] {
  const changed = countByKind(changes);
  const counts: ImportResult['counts'] = {};
  for (const kind of [...Object.values(kindPlurals), 'memberRoles'])
    counts[kind] = { inserted: 0, updated: 0, removed: 0, unchanged: 0, ...changed[kind] };
  for (const [kind, total] of staged) {
    const plural = kindPlurals[kind];
    const of = counts[plural];
    if (of !== undefined) of.unchanged = Math.max(0, total + (ended[plural] ?? 0) - of.inserted - of.updated);
  }
  return counts;
}

function sumEvents(planned: readonly PlannedEvents[]): EventCounts {
  const counts: EventCounts = {};
  for (const { type, events, deliveries } of planned) {
    const of = counts[type] ?? { events: 0, deliveries: 0 };
    counts[type] = { events: of.events + events, deliveries: of.deliveries + deliveries };
  }
  return counts;
}
