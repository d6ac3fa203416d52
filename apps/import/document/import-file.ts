import { createHash, type Hash } from 'node:crypto';
import type pg from 'pg';
import { dayMs } from '#domain/contract/durations.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import { isServerUnavailable } from '#domain/db/driver/errors.ts';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import { checkStaged } from './check-staged.ts';
import { countLeftOut, stageLeftOut } from './complete.ts';
import type { Kind } from './format.ts';
import type { Bytes } from './json-tokens.ts';
import { changeTableSql, mergeStaged } from './merge.ts';
import { type Change, countPlanned, countPlannedEvents, listPlanned } from './plan.ts';
import { InvalidDocumentError, ProblemList } from './problems.ts';
import { Progress } from './progress.ts';
import { readDocument } from './read-document.ts';
import { type DocumentClock, resolveStaged, stagedRelations } from './resolve.ts';
import { buildResult, type ImportResult, type ResultParts } from './result.ts';
import { openStaging } from './staging.ts';
import { findAccessAhead, listImportedOrganizations, recordImportEntries } from './summary.ts';

export interface ImportOptions {
  /** The owner's login, or one that may act as `org_api_import`, or for `backfill` as `org_api_backfill`. */
  server: PostgresServer;
  source: Bytes;
  /** Shown in progress and errors. */
  fileName: string;
  /** The region of this installation; a file of another region is rejected. */
  region: Region;
  /** Whether every date moves by the whole days from the file's `asOf` to today (UTC). */
  today?: boolean;
  /** Whether to write as `org_api_backfill`, whose writes create no events. */
  backfill?: boolean;
  /** Whether to count what would change, and write nothing. It takes no lock, so it may run beside an import. */
  dryRun?: boolean;
  /** How many of the changes a dry run lists; 0 by default. */
  list?: number;
  /** Whether what the document's lists leave out ends. */
  complete?: boolean;
  /** With `complete`: how many objects may end. Another number rejects the document. */
  ending?: number;
  /** The time of the import; the database's clock by default. */
  now?: Date;
  /** Receives one line per second while reading, and one per stage. */
  report?: (line: string) => void;
}

/**
 * Imports one document completely or not at all, in one transaction: objects are staged in
 * temporary tables as they are read, checked as sets, and merged as sets. Memory does not grow with
 * the document, and a file that was imported before changes nothing. A dry run ends before the merge.
 *
 * @throws InvalidDocumentError with every problem of the document.
 * @throws a `pg` error when the database cannot be reached or fails.
 */
export async function importFile(options: ImportOptions): Promise<ImportResult> {
  const client = new PrimaryConnection(
    connectionOptions(options.server, { applicationName: 'org-api-import', connectTimeoutMs: 10_000 }),
  );
  await client.connect();
  const progress = new Progress((line) => options.report?.(`${options.fileName}: ${line}`));
  try {
    await client.query('begin');
    const result = await importInTransaction(client, options, progress);
    if (options.dryRun) await client.query('rollback');
    else await commit(client);
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    progress.stop();
    await client.end().catch(() => {});
  }
}

/** The connection was lost before the server's response to the commit. */
export class UncertainImportError extends Error {
  override name = 'UncertainImportError';
}

/** Passes bytes on, and adds them to a hash. The log identifies a file by it: a file's name may be a family's. */
async function* hashed(source: Bytes, hash: Hash): Bytes {
  for await (const bytes of source) {
    hash.update(bytes);
    yield bytes;
  }
}

/** @throws UncertainImportError */
async function commit(client: pg.Client): Promise<void> {
  try {
    await client.query('commit');
  } catch (cause) {
    throw isServerUnavailable(cause) ? new UncertainImportError('the import may be committed', { cause }) : cause;
  }
}

async function importInTransaction(
  client: pg.Client,
  options: ImportOptions,
  progress: Progress,
): Promise<ImportResult> {
  const { fileName, region } = options;
  // An import may take long, and waits for its file.
  await client.query(
    `select set_config(name, '0', true) from pg_settings
     where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`,
  );
  // Requested before the file is read, so that a login without the right is rejected at once.
  const role = options.backfill ? 'org_api_backfill' : 'org_api_import';
  await client.query(`set local role ${role}; reset role`);

  const staging = await openStaging(client);
  const problems = new ProblemList();
  const hash = createHash('sha256');
  const source = hashed(options.source, hash);
  const document = await readDocument({ source, staging, problems, progress });
  if (document === null) throw rejected(fileName, problems);

  progress.stage('checking');
  rejectOtherRegion(document.region, region, problems);
  const clock = setClock(document.asOf, { ...options, now: options.now ?? (await databaseTime(client)) }, problems);
  if (!options.dryRun) await client.query('select lock_import()'); // imports check and write one after another
  await planForSize(client, staging.counts);
  await resolveStaged(client, clock);
  if (options.complete) await stageLeftOut(client, clock);
  // From here on PostgreSQL rejects every write but those to temporary tables.
  if (options.dryRun) await client.query('set transaction read only');
  await checkStaged(client, clock, problems);
  const ended = options.complete ? await countLeftOut(client) : undefined;
  rejectOtherEnding(options.ending, ended ?? {}, problems);
  if (problems.total > 0) throw rejected(fileName, problems);

  const ahead = await findAccessAhead(client);
  const parts = {
    fileName,
    region,
    shiftedDays: clock.shiftDays,
    staged: staging.counts,
    ...(ahead && { ahead }),
    ...(ended && { ended }),
  };
  if (options.dryRun) return buildResult({ ...parts, ...(await compare(client, options, progress)) });

  await client.query(changeTableSql);
  // The owner imports with the rights of the import alone: triggers know writers by their role.
  await client.query(`grant select on ${stagedRelations.join(', ')} to ${role}`);
  await client.query(`grant select, insert on import_change to ${role}`);
  await client.query(`set local role ${role}`);
  await mergeStaged(client, (stage) => progress.stage(stage));
  const action = options.backfill ? 'import.backfill' : 'import';
  await recordImportEntries(client, { action, sha256: hash.digest('hex') });
  const result = buildResult({
    ...parts,
    isDryRun: false,
    organizations: await listImportedOrganizations(client),
    changes: await listChanges(client),
  });
  progress.stage('committing');
  return result;
}

function rejectOtherRegion(named: Region | undefined, region: Region, problems: ProblemList): void {
  if (named === undefined || named === region) return;
  const [other, own] = [named, region].map((code) => `${regions[code].name} (${code})`);
  problems.add('$.region', `is ${other}, but this installation serves ${own}`);
}

/** Returns how dates are moved and compared. A document without a valid `asOf` describes today. */
function setClock(
  asOf: string | undefined,
  { now, today }: { now: Date; today?: boolean },
  problems: ProblemList,
): DocumentClock {
  const days = asOf === undefined ? 0 : daysBetween(asOf, now);
  if (!today && days < -1) problems.add('$.asOf', 'is after tomorrow: correct it, or move the dates with --today');
  return { now, asOf: asOf ?? now.toISOString().slice(0, 10), shiftDays: today ? days : 0 };
}

/** From this number of objects on, whole tables are joined at once. */
const largeFileObjects = 500;

/**
 * Disables nested loops for a large file. The planner's statistics do not include rows that were
 * just added: it searched an organization's 10,000 grants once for each of 5,000 new seats (43 s;
 * with 100,000 grants over 10 min; without nested loops 0.3 s and 3 s).
 */
async function planForSize(client: pg.Client, staged: ReadonlyMap<Kind, number>): Promise<void> {
  const objects = [...staged.values()].reduce((sum, count) => sum + count, 0);
  if (objects >= largeFileObjects) await client.query('set local enable_nestloop = off');
}

function rejected(fileName: string, problems: ProblemList): InvalidDocumentError {
  const order = new Intl.Collator('en', { numeric: true });
  const listed = problems.listed.toSorted((a, b) => order.compare(a.path, b.path));
  return new InvalidDocumentError(fileName, listed, problems.total);
}

async function databaseTime(client: pg.Client): Promise<Date> {
  const { rows } = await client.query<{ now: Date }>('select now() as now');
  return rows[0]?.now ?? new Date();
}

/** Returns the whole UTC days from `asOf` to the day of `now`. */
function daysBetween(asOf: string, now: Date): number {
  const today = Date.parse(`${now.toISOString().slice(0, 10)}T00:00:00.000Z`);
  return Math.round((today - Date.parse(`${asOf}T00:00:00.000Z`)) / dayMs);
}

async function listChanges(client: pg.Client): Promise<Change[]> {
  const { rows } = await client.query<Change>(
    `select kind, change, organization_id as "organizationId", sum(rows)::integer as rows
     from import_change group by kind, change, organization_id`,
  );
  return rows;
}

type Comparison = Pick<ResultParts, 'isDryRun' | 'organizations' | 'changes' | 'planned' | 'list'>;

/** Returns what the import would do. A backfill creates no events. */
async function compare(client: pg.Client, options: ImportOptions, progress: Progress): Promise<Comparison> {
  progress.stage('comparing');
  return {
    isDryRun: true,
    organizations: await listImportedOrganizations(client),
    changes: await countPlanned(client),
    planned: options.backfill ? [] : await countPlannedEvents(client),
    ...(options.list !== undefined && { list: await listPlanned(client, options.list) }),
  };
}

/** Adds a problem when a document does not end as many objects as the caller expects, such as a truncated one. */
function rejectOtherEnding(expected: number | undefined, ended: Record<string, number>, problems: ProblemList): void {
  const total = Object.values(ended).reduce((sum, count) => sum + count, 0);
  if (expected === undefined || expected === total) return;
  const objects = total === 1 ? '1 object' : `${total} objects`;
  problems.add('$', `would end ${objects}, and not the ${expected} that --ending names`);
}
