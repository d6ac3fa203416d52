/**
 * Monthly partitions of the activity log: created ahead, dropped when old, without losing a row.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Database } from '#domain/db/connect.ts';
import { migrate } from '#domain/db/migrate.ts';
import { setupDatabase } from '#test/setup.ts';

/** Returns the months of the partitions, oldest first, as `YYYY_MM`. */
async function listMonths({ pool }: Database): Promise<string[]> {
  const { rows } = await pool.query<{ month: string }>(
    `select substr(c.relname, 10) as month from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'activity'::regclass and c.relname <> 'activity_default' order by 1`,
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
    `insert into activity (id, at, organization_id, action) values ($1, ${at}, $1, 'test')
      returning tableoid::regclass::text as partition`,
    [id],
  );
  return rows[0]?.partition ?? '';
}

it('the log has partitions for this month and the next three, and creating them again adds none', async () => {
  const { owner } = await setupDatabase();
  expect(await listMonths(owner)).toEqual([0, 1, 2, 3].map(monthFromNow));
  const { rows } = await owner.pool.query('select keep_activity_partitions() as made');
  expect(rows).toEqual([{ made: 0 }]);
});

it('missing partitions are created again, also by two processes at once', async () => {
  const { owner } = await setupDatabase();
  await owner.pool.query(`drop table activity_${monthFromNow(2)}, activity_${monthFromNow(3)}`);
  const made = await Promise.all([1, 2, 3].map(() => owner.pool.query('select keep_activity_partitions() as made')));
  expect(made.map(({ rows }) => rows[0].made as number).sort()).toEqual([0, 0, 2]);
  expect(await listMonths(owner)).toEqual([0, 1, 2, 3].map(monthFromNow));
});

it('rows outside the partitions go to the default one, and a month with such rows stays there', async () => {
  const { owner } = await setupDatabase();
  expect(await recordAt(owner, 'now()')).toBe(`activity_${monthFromNow(0)}`);
  expect(await recordAt(owner, `now() + interval '1 year'`)).toBe('activity_default');
  expect(await recordAt(owner, `now() - interval '1 year'`)).toBe('activity_default');
  await owner.pool.query(`drop table activity_${monthFromNow(0)}`);
  expect(await recordAt(owner, 'now()')).toBe('activity_default');
  const { rows } = await owner.pool.query('select keep_activity_partitions() as made');
  expect(rows).toEqual([{ made: 0 }]);
  expect(await recordAt(owner, 'now()')).toBe('activity_default');
});

it('months whose rows are all older than the retention are dropped, and such rows of the default partition', async () => {
  const { owner } = await setupDatabase();
  const month = (months: number) =>
    `date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' + interval '${months} months'`;
  for (const past of [-4, -3, -2, -1]) {
    await owner.pool.query(
      `do $$ begin execute format('create table activity_${monthFromNow(past)} partition of activity for values from (%L) to (%L)', ${month(past)}, ${month(past + 1)}); end $$`,
    );
    await recordAt(owner, `${month(past)} + interval '1 day'`);
  }
  await owner.pool.query('update retention_floor set activity_days = 1');
  await recordAt(owner, `now() - interval '2 years'`);
  await recordAt(owner, `now() + interval '2 years'`);
  // Slightly longer than since the end of the month before last, so some rows of last month are
  // younger.
  const { rows } = await owner.pool.query(
    `select drop_old_activity(now() - (${month(-1)}) - interval '1 second') as dropped`,
  );
  expect(rows).toEqual([{ dropped: [monthFromNow(-4), monthFromNow(-3), monthFromNow(-2)] }]);
  expect(await listMonths(owner)).toEqual([-1, 0, 1, 2, 3].map(monthFromNow));
  const left = await owner.pool.query(
    'select count(*)::int as lines from activity where at < now() - interval $$1 year$$',
  );
  expect(left.rows).toEqual([{ lines: 0 }]);
  expect((await owner.pool.query('select count(*)::int as lines from activity_default')).rows).toEqual([{ lines: 1 }]);
});

it('the worker cannot drop activity that is younger than the owner’s floor, nor change the floor', async () => {
  const { owner, database } = await setupDatabase();
  await migrate({ ownerUrl: database.ownerUrl, logins: [], activityFloorDays: 400 });
  const worker = new pg.Client({ connectionString: database.urls.worker });
  await worker.connect();
  onTestFinished(() => worker.end());
  await recordAt(owner, `now() - interval '399 days'`);
  for (const retention of ['0 days', '23 hours', '-1 year', '399 days'])
    await expect(worker.query('select drop_old_activity($1::interval)', [retention])).rejects.toThrow(
      /400 days at least \(ACTIVITY_RETENTION_FLOOR of the migrator\)/,
    );
  await worker.query(`select drop_old_activity('400 days')`);
  const { rows } = await owner.pool.query(`select from activity where at < now() - interval '398 days'`);
  expect(rows.length).toBe(1);
  const forbidden = [
    'update retention_floor set activity_days = 1',
    'delete from activity',
    'drop table activity_default',
  ];
  for (const statement of forbidden) await expect(worker.query(statement)).rejects.toMatchObject({ code: '42501' });
});
