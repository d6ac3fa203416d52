/**
 * Monthly partitions of the audit log: created ahead, dropped when old, without losing an entry.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';
import { readConfig } from '../../apps/migrate/config.ts';
import { migrate } from '../../apps/migrate/migrate.ts';

/** Returns the months of the partitions, oldest first, as `YYYY_MM`. */
async function listMonths({ pool }: Database): Promise<string[]> {
  const { rows } = await pool.query<{ month: string }>(
    `select substr(c.relname, 13) as month from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'audit_entry'::regclass and c.relname <> 'audit_entry_default' order by 1`,
  );
  return rows.map(({ month }) => month);
}

/** Returns the month at a distance from this one, as `YYYY_MM`. */
function monthFromNow(months: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1))
    .toISOString()
    .slice(0, 7)
    .replace('-', '_');
}

async function recordAt({ pool }: Database, at: string): Promise<string> {
  const id = randomUUID();
  const { rows } = await pool.query<{ partition: string }>(
    `insert into audit_entry (id, at, organization_id, action) values ($1, ${at}, $1, 'test')
      returning tableoid::regclass::text as partition`,
    [id],
  );
  return rows[0]?.partition ?? '';
}

it('the log has partitions for this month and the next three, and creating them again adds none', async () => {
  const { owner } = await setupDatabase();
  expect(await listMonths(owner)).toEqual([0, 1, 2, 3].map(monthFromNow));
  const { rows } = await owner.pool.query('select keep_audit_partitions() as made');
  expect(rows).toEqual([{ made: 0 }]);
});

it('missing partitions are created again, also by two processes at once', async () => {
  const { owner } = await setupDatabase();
  await owner.pool.query(`drop table audit_entry_${monthFromNow(2)}, audit_entry_${monthFromNow(3)}`);
  const made = await Promise.all([1, 2, 3].map(() => owner.pool.query('select keep_audit_partitions() as made')));
  expect(made.map(({ rows }) => rows[0].made as number).sort()).toEqual([0, 0, 2]);
  expect(await listMonths(owner)).toEqual([0, 1, 2, 3].map(monthFromNow));
});

it('entries outside the partitions go to the default one, and a month with such entries stays there', async () => {
  const { owner } = await setupDatabase();
  expect(await recordAt(owner, 'now()')).toBe(`audit_entry_${monthFromNow(0)}`);
  expect(await recordAt(owner, `now() + interval '1 year'`)).toBe('audit_entry_default');
  expect(await recordAt(owner, `now() - interval '1 year'`)).toBe('audit_entry_default');
  await owner.pool.query(`drop table audit_entry_${monthFromNow(0)}`);
  expect(await recordAt(owner, 'now()')).toBe('audit_entry_default');
  const { rows } = await owner.pool.query('select keep_audit_partitions() as made');
  expect(rows).toEqual([{ made: 0 }]);
  expect(await recordAt(owner, 'now()')).toBe('audit_entry_default');
});

it('months whose entries are all older than the retention are dropped, and such entries of the default partition', async () => {
  const { owner } = await setupDatabase();
  const month = (months: number) =>
    `date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' + interval '${months} months'`;
  for (const past of [-4, -3, -2, -1]) {
    await owner.pool.query(
      `do $$ begin execute format('create table audit_entry_${monthFromNow(past)} partition of audit_entry for values from (%L) to (%L)', ${month(past)}, ${month(past + 1)}); end $$`,
    );
    await recordAt(owner, `${month(past)} + interval '1 day'`);
  }
  await owner.pool.query('update retention_floor set audit_log_days = 1');
  await recordAt(owner, `now() - interval '2 years'`);
  await recordAt(owner, `now() + interval '2 years'`);
  // Whole days since last month began, so some entries of last month are younger.
  const { rows } = await owner.pool.query(
    `select drop_old_audit_entries(floor(extract(epoch from now() - (${month(-1)})) / 86400)::integer) as dropped`,
  );
  expect(rows).toEqual([{ dropped: [monthFromNow(-4), monthFromNow(-3), monthFromNow(-2)] }]);
  expect(await listMonths(owner)).toEqual([-1, 0, 1, 2, 3].map(monthFromNow));
  const left = await owner.pool.query(
    'select count(*)::int as entries from audit_entry where at < now() - interval $$1 year$$',
  );
  expect(left.rows).toEqual([{ entries: 0 }]);
  expect((await owner.pool.query('select count(*)::int as entries from audit_entry_default')).rows).toEqual([
    { entries: 1 },
  ]);
});

it('a migration without AUDIT_LOG_RETENTION_FLOOR, as in the pod orgctl, keeps the floor of the release', async () => {
  const { owner, database } = await setupDatabase();
  const migrateWith = async (settings: Record<string, string>) => {
    await migrate(readConfig({ DATABASE_URL: database.ownerUrl, ...settings }));
    return (await owner.pool.query('select audit_log_days as days from retention_floor')).rows;
  };
  expect(await migrateWith({})).toEqual([{ days: 90 }]);
  expect(await migrateWith({ AUDIT_LOG_RETENTION_FLOOR: '400d' })).toEqual([{ days: 400 }]);
  expect(await migrateWith({})).toEqual([{ days: 400 }]);
});

/** Arguments that are no number of days, or no number that a retention may be. */
const hostileDays = ['399', '0', '-1', '-36500', '-2147483648', '2147483647', '3000000', 'null', "'x'", "'NaN'"].concat(
  [`interval '-1200 months 36090 days'`, `interval '1 day'`, `'infinity'`, '1e300'],
);

it('the worker drops nothing younger than the owner’s floor, with any argument, time zone or date style', async () => {
  const { owner, database } = await setupDatabase();
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [], auditLogFloorDays: 400 });
  const worker = await connect(database.urls.worker);
  for (const days of ['0', '45', '399']) await recordAt(owner, `now() - interval '${days} days'`);
  await recordAt(owner, `now() + interval '40 days'`);
  const countEntries = async () => (await owner.pool.query('select from audit_entry')).rowCount;
  await worker.query(`set timezone = '<UTC>-167'; set datestyle = 'German'`);
  for (const days of hostileDays)
    await expect(worker.query(`select drop_old_audit_entries(${days})`), days).rejects.toMatchObject({
      code: expect.toBeOneOf(['22023', '22003', '22008', '22P02', '42883']),
    });
  await expect(worker.query('select drop_old_audit_entries(399)')).rejects.toThrow(
    /400 days at least \(AUDIT_LOG_RETENTION_FLOOR of the migrator\)/,
  );
  expect(await countEntries()).toBe(4);
  await worker.query('select drop_old_audit_entries(400)');
  expect(await countEntries()).toBe(4);
  const forbidden = [
    'update retention_floor set audit_log_days = 1',
    'delete from audit_entry',
    'drop table audit_entry_default',
    'insert into audit_purge values (now(), now(), 0)',
    'delete from audit_purge',
  ];
  for (const statement of forbidden) await expect(worker.query(statement)).rejects.toMatchObject({ code: '42501' });
});

it('a partition covers its month in UTC, whatever time zone and date style its creator has', async () => {
  const { owner, database } = await setupDatabase();
  await owner.pool.query(`drop table audit_entry_${monthFromNow(3)}, audit_link_${monthFromNow(3)}`);
  const worker = await connect(database.urls.worker);
  await worker.query(`set timezone = '<UTC>-167'; set datestyle = 'SQL, DMY'`);
  await worker.query('select keep_audit_partitions()');
  const [from, to] = [3, 4].map((months) => `${monthFromNow(months).replace('_', '-')}-01T00:00:00Z`);
  expect(await recordAt(owner, `'${from}'`)).toBe(`audit_entry_${monthFromNow(3)}`);
  expect(await recordAt(owner, `'${to}'::timestamptz - interval '1 second'`)).toBe(`audit_entry_${monthFromNow(3)}`);
  for (const outside of [`'${from}'::timestamptz - interval '1 second'`, `'${to}'`])
    expect(await recordAt(owner, outside)).not.toBe(`audit_entry_${monthFromNow(3)}`);
});

it.each([
  ['created', 'select keep_audit_partitions()'],
  ['dropped', 'select drop_old_audit_entries(90)'],
])('while a month cannot be %s because a transaction has read the log, entries are written', async (_, statement) => {
  const { owner, database, make } = await setupDatabase();
  const { id } = await make.apiKey();
  await owner.pool.query(`drop table audit_entry_${monthFromNow(3)};
    create table audit_entry_2020_01 partition of audit_entry for values from ('2020-01-01Z') to ('2020-02-01Z')`);
  const [reader, worker, api] = [
    await connect(database.urls.console),
    await connect(database.urls.worker),
    await connect(database.urls.api),
  ];
  await reader.query('begin; select from audit_entry');
  let hasEnded = false;
  const changed = worker.query(statement).then(
    () => 'changed',
    (error: pg.DatabaseError) => error.code,
  );
  void changed.finally(() => {
    hasEnded = true;
  });
  const isWaiting = async () =>
    (await owner.pool.query(`select from pg_locks where not granted and relation = 'audit_entry'::regclass`)).rowCount;
  await expect.poll(async () => hasEnded || (await isWaiting()) === 1).toBe(true);
  await api.query(
    `select api.record_key_uses(array[new_id], array[$1::uuid], array['api.getOrg'], array[200::smallint],
      array[null], array['192.0.2.1'::inet]) from gen_random_uuid() new_id`,
    [id],
  );
  expect(await changed).toBe('55P03');
  await reader.query('commit');
  await worker.query(statement);
});

it('a worker cannot hold the stream of the log for more than five minutes', async () => {
  const { owner, database } = await setupDatabase();
  const worker = await connect(database.urls.worker);
  await worker.query('select claim_audit_stream(10, 30)');
  await recordAt(owner, 'now()');
  await owner.pool.query(
    `update audit_progress set linked_to = pg_snapshot_xmax(pg_current_snapshot())::text::bigint, streamed_to = 0`,
  );
  expect((await worker.query('select claim_audit_stream(10, 2147483647)')).rowCount).toBe(1);
  const { rows } = await owner.pool.query(
    `select claimed_until <= clock_timestamp() + interval '5 minutes' as "isShort" from audit_progress`,
  );
  expect(rows).toEqual([{ isShort: true }]);
});

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}
