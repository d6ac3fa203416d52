import pg from 'pg';
import { type Region, regions } from '#domain/contract/regions.ts';
import { checkStaged } from './check-staged.ts';
import { type Kind, kindPlurals } from './format.ts';
import type { Bytes } from './json-tokens.ts';
import { type Changes, changeTableSql, mergeStaged } from './merge.ts';
import { ImportRefused, type ProblemList, problemList } from './problems.ts';
import { type Progress, stageProgress } from './progress.ts';
import { readDocument } from './read-document.ts';
import { resolveStaged, stagedRelations } from './resolve.ts';
import { openStaging } from './staging.ts';
import { listImportedOrganizations, recordActivity } from './summary.ts';

export interface ImportOptions {
  /**
   * URL of the owner or of the platform's login. `backfill` needs one that may act as
   * `org_api_backfill`.
   */
  databaseUrl: string;
  source: Bytes;
  /** Shown in progress, refusals and the activity log. */
  fileName: string;
  /** The region this installation serves; a file of another is refused. */
  region: Region;
  /** Move every date-time and day by the whole days from the file's `asOf` to today (UTC). */
  today?: boolean;
  /** Write in silence: as `org_api_backfill`, whose writes make no events. */
  backfill?: boolean;
  /** The moment of the import. The database's own clock unless a test says otherwise. */
  now?: Date;
  /** Receives one line per second while reading, and one per stage. */
  report?: (line: string) => void;
}

/** What one import did, once all of it was committed. */
export interface ImportResult {
  fileName: string;
  region: Region;
  /** Whole days that dates were moved by; 0 without `today`. */
  shiftedDays: number;
  /**
   * In the order of the file. `ownerUserId`: the first active member who is an owner; null when
   * there is none.
   */
  organizations: { id: string; name: string; ownerUserId: string | null }[];
  /** By kind, named like the lists of the format (and `memberRoles`). */
  counts: Record<string, Changes & { unchanged: number }>;
}

/**
 * Imports of one database go one after the other from their checks on. Any constant will do; this
 * one spells "impo" in ASCII.
 */
const importLock = 0x696d706f;

/**
 * Imports one document: all of it, or nothing. Memory stays flat whatever its size.
 *
 * Everything happens in one transaction on one connection: objects are staged in temporary tables
 * as they are read, checked as sets, and merged as sets. A file that was imported before changes
 * nothing.
 *
 * @throws ImportRefused with every problem of the document.
 * @throws a `pg` error when the database cannot be reached or fails; nothing was written then
 * either.
 */
export async function importFile(options: ImportOptions): Promise<ImportResult> {
  const client = new pg.Client({
    connectionString: options.databaseUrl,
    application_name: 'org-api-import',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  // A connection that breaks fails the statement in flight; without a listener it would end the
  // process too.
  client.on('error', () => {});
  await client.connect();
  const progress = stageProgress((line) => options.report?.(`${options.fileName}: ${line}`));
  try {
    await client.query('begin');
    const result = await importInTransaction(client, options, progress);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    progress.stop();
    await client.end().catch(() => {});
  }
}

async function importInTransaction(
  client: pg.Client,
  options: ImportOptions,
  progress: Progress,
): Promise<ImportResult> {
  const { fileName, region } = options;
  await client.query(
    `set local timezone = 'UTC'; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`,
  );
  // Asked for before the file is read: a login without the right hears of it at once.
  if (options.backfill) await client.query('set local role org_api_backfill; reset role');

  const staging = await openStaging(client);
  const problems = problemList();
  const document = await readDocument({ source: options.source, staging, problems, progress });
  if (document === null) throw refused(fileName, problems);
  if (document.region !== undefined && document.region !== region) {
    const named = `${regions[document.region].name} (${document.region})`;
    problems.add('$.region', `is ${named}, but this installation serves ${regions[region].name} (${region})`);
  }

  progress.stage('checking');
  const now = options.now ?? (await databaseTime(client));
  const asOf = document.asOf ?? now.toISOString().slice(0, 10);
  const shiftDays = options.today ? daysBetween(asOf, now) : 0;
  await client.query('select pg_advisory_xact_lock($1)', [importLock]);
  await planForSize(client, staging.counts);
  await resolveStaged(client, { now, asOf, shiftDays });
  await checkStaged(client, { now, asOf, shiftDays }, problems);
  if (problems.total > 0) throw refused(fileName, problems);

  await client.query(changeTableSql);
  if (options.backfill) {
    await client.query(`grant select on ${stagedRelations.join(', ')} to org_api_backfill`);
    await client.query('grant select, insert on import_change to org_api_backfill');
    await client.query('set local role org_api_backfill');
  }
  await mergeStaged(client, progress.stage);
  await recordActivity(client, { action: options.backfill ? 'import.backfill' : 'import', fileName });
  const result: ImportResult = {
    fileName,
    region,
    shiftedDays: shiftDays,
    organizations: await listImportedOrganizations(client),
    counts: await countChanges(client, staging.counts),
  };
  progress.stage('committing');
  return result;
}

/** Objects in a file from which on whole tables are joined at once. */
const largeFileObjects = 500;

/**
 * Keeps the planner from nested loops for a large file. Its statistics know nothing of rows that
 * came in a moment ago, in this import or the last: with them it searched an organization's 10,000
 * grants once for each of 5,000 new seats, in the trigger that guards seats too (43 s; 100,000
 * grants: over 10 min; without, 0.3 s and 3 s).
 */
async function planForSize(client: pg.Client, staged: ReadonlyMap<Kind, number>): Promise<void> {
  const objects = [...staged.values()].reduce((sum, count) => sum + count, 0);
  if (objects >= largeFileObjects) await client.query('set local enable_nestloop = off');
}

function refused(fileName: string, problems: ProblemList): ImportRefused {
  const order = new Intl.Collator('en', { numeric: true });
  const listed = problems.listed.toSorted((a, b) => order.compare(a.path, b.path));
  return new ImportRefused(fileName, listed, problems.total);
}

async function databaseTime(client: pg.Client): Promise<Date> {
  const { rows } = await client.query<{ now: Date }>('select now() as now');
  return rows[0]?.now ?? new Date();
}

/** Whole UTC days from `asOf` to the day of `now`. */
function daysBetween(asOf: string, now: Date): number {
  const today = Date.parse(`${now.toISOString().slice(0, 10)}T00:00:00.000Z`);
  return Math.round((today - Date.parse(`${asOf}T00:00:00.000Z`)) / 86_400_000);
}

async function countChanges(client: pg.Client, staged: ReadonlyMap<Kind, number>): Promise<ImportResult['counts']> {
  const { rows } = await client.query<{ kind: string; change: keyof Changes; rows: string }>(
    'select kind, change, sum(rows) as rows from import_change group by kind, change',
  );
  const counts: ImportResult['counts'] = {};
  for (const plural of [...Object.values(kindPlurals), 'memberRoles'])
    counts[plural] = { inserted: 0, updated: 0, removed: 0, unchanged: 0 };
  for (const row of rows) {
    const of = counts[row.kind];
    if (of !== undefined) of[row.change] = Number(row.rows);
  }
  for (const [kind, total] of staged) {
    const of = counts[kindPlurals[kind]];
    if (of !== undefined) of.unchanged = Math.max(0, total - of.inserted - of.updated);
  }
  return counts;
}
