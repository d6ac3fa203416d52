/**
 * `npm run bench:activity`: the cost of the activity log's hash chain. README.md in this folder
 * explains the figures.
 */
import { randomUUID } from 'node:crypto';
import { cpus } from 'node:os';
import pg from 'pg';
import { verifyActivity } from '#domain/activity/verify.ts';
import { recordKeyUsesSql } from '#domain/db/statements/activity.ts';
import { type AppendedRow, appendActivityChainSql } from '#domain/db/statements/activity-chain.ts';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { removeDeadRunFolders } from '#test/run-folder.ts';
import { linesPerAppend } from '../../../apps/worker/maintenance-steps.ts';
import { type BenchDatabase, startStack } from '../retention/stack.ts';

startCommand({
  usage: ['Usage: npm run bench:activity', 'Measures the hash chain of the activity log.'].join('\n\n'),
  read: readNoOptions,
});

const organizations = 50;
const linesPerInsert = 25;
const turns = 1_500;

const startedAt = performance.now();
const report = (line: string) =>
  console.error(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(3)} s  ${line}`);

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** Creates keys, and returns their ids. */
async function createKeys({ owner }: BenchDatabase): Promise<string[]> {
  const { rows } = await owner.query<{ id: string }>(
    `with o as (
       insert into organization (name, slug, kind, status) select 'O', 'o' || n, 'law_firm', 'active'
         from generate_series(1, $1) n returning id
     ), p as (insert into person (id) select 'usr_' || o.id from o returning id), m as (
       insert into membership (organization_id, person_id, name, email, status)
       select o.id, p.id, 'P', 'p@example.org', 'active' from o join p on p.id = 'usr_' || o.id returning *
     )
     insert into api_key (organization_id, maker_id, fingerprint, pepper_version, hint, scopes, slot)
     select m.organization_id, m.person_id, sha256(convert_to(m.person_id, 'UTF8')), 1, '', '{org.read}', 1 from m
     returning id`,
    [organizations],
  );
  return rows.map(({ id }) => id);
}

/** Inserts rows as the API does, and returns the milliseconds. */
async function insertLines({ owner }: BenchDatabase, keys: readonly string[]): Promise<number> {
  const of = <T>(value: (n: number) => T) => Array.from({ length: linesPerInsert }, (_, n) => value(n));
  const values = [
    of(() => randomUUID()),
    of((n) => keys[(n * 7) % keys.length]),
    of(() => 'api.getOrg'),
    of(() => 200),
    of(() => null),
    of(() => '203.0.113.7'),
  ];
  const from = performance.now();
  await owner.query({ name: 'recordKeyUses', text: recordKeyUsesSql, values });
  return performance.now() - from;
}

async function appendAll(client: pg.Client): Promise<number> {
  let linked = 0;
  for (;;) {
    const { rows } = await client.query<AppendedRow>(appendActivityChainSql, [linesPerAppend]);
    linked += rows[0]?.linked ?? 0;
    if (rows[0]?.isAllDone !== false) return linked;
  }
}

console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'})`);
await removeDeadRunFolders(report);
const stack = await startStack(report);
try {
  const [chained, plain] = [await stack.createDatabase('chained'), await stack.createDatabase('plain')];
  await plain.owner.query('drop index activity_by_serial; alter table activity alter column serial set default 0');
  const [keys, plainKeys] = [await createKeys(chained), await createKeys(plain)];
  const compare = async () => {
    const sides = { plain: [] as number[], chained: [] as number[] };
    for (let turn = 0; turn < turns; turn += 1) {
      sides.plain.push(await insertLines(plain, plainKeys));
      sides.chained.push(await insertLines(chained, keys));
    }
    return { base: median(sides.plain), ratio: (median(sides.chained) / median(sides.plain)).toFixed(2) };
  };
  const alone = await compare();
  report(`${turns} inserts of ${linesPerInsert} lines on each side`);
  const worker = await stack.connect(chained.workerUrl);
  const from = performance.now();
  const linked = await appendAll(worker);
  const seconds = (performance.now() - from) / 1000;
  report(`linked ${linked} lines`);

  let isInserting = true;
  const appending = (async () => {
    while (isInserting) {
      await appendAll(worker);
      await new Promise((done) => setTimeout(done, 1_000));
    }
  })();
  const during = await compare();
  isInserting = false;
  await appending;
  await appendAll(worker);
  const pool = new pg.Pool({ connectionString: chained.ownerUrl, max: 1 });
  const verifyingFrom = performance.now();
  const { lines, faults } = await verifyActivity(pool, { organizationId: null, month: null });
  const verifySeconds = (performance.now() - verifyingFrom) / 1000;
  await pool.end();
  const { rows } = await chained.owner.query<{ log: string; links: string }>(
    `select sum(pg_total_relation_size(i.inhrelid)) filter (where i.inhparent = 'activity'::regclass) as log,
       sum(pg_total_relation_size(i.inhrelid)) filter (where i.inhparent = 'activity_link'::regclass) as links
     from pg_inherits i`,
  );
  const bytesOf = (bytes?: string) => Math.round(Number(bytes) / lines);
  const perSecond = (count: number, taken: number) => `${Math.round(count / taken)} lines a second`;
  console.log(`
  insert of ${linesPerInsert} lines, over one without the transaction's number and its index:
    nothing appended: ${alone.ratio} times (${alone.base.toFixed(2)} ms)
    while the chain is appended: ${during.ratio} times
  appended: ${perSecond(linked, seconds)}; verified: ${perSecond(lines, verifySeconds)}, ${faults.length} faults
  bytes of a line with its indexes: ${bytesOf(rows[0]?.log)}; of a link: ${bytesOf(rows[0]?.links)}`);
} finally {
  await stack.stop();
}
