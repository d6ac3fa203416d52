import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { createMaintenance } from '../../apps/worker/maintenance.ts';

/** A started maintenance loop of the test's own database, with the worker's login and no more rights than that. */
async function startMaintenance(databaseUrl: string, retentionDays = 730) {
  const errors: unknown[] = [];
  const counts = { ended: 0, rounds: 0 };
  const maintenance = createMaintenance({
    databaseUrl,
    activityRetentionDays: retentionDays,
    everyMs: 50,
    onEnded: (grants) => {
      counts.ended += grants;
    },
    onRound: () => {
      counts.rounds += 1;
    },
    onError: (cause) => errors.push(cause),
  });
  await maintenance.start();
  onTestFinished(() => maintenance.stop());
  return { maintenance, counts, errors };
}

describe('the maintenance loop', () => {
  it('ends access whose end has passed, with reason ended, and its seat with it', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const due = await make.grant({ professional, endsAt: new Date(Date.now() + 150) });
    const open = await make.grant({ professional, endsAt: new Date(Date.now() + 3_600_000) });
    const seat = await make.seat({ orgId: professional.orgId, grant: due });
    const { errors } = await startMaintenance(database.urls.worker);

    await vi.waitFor(async () => {
      const { rows } = await owner.pool.query('select id, status, end_reason from client_grant order by id = $1 desc', [
        due.id,
      ]);
      expect(rows).toEqual([
        { id: due.id, status: 'ended', end_reason: 'ended' },
        { id: open.id, status: 'active', end_reason: null },
      ]);
    }, 10_000);
    const { rows } = await owner.pool.query('select end_reason from seat where id = $1 and ended_at is not null', [
      seat,
    ]);
    expect(rows).toEqual([{ end_reason: 'access_ended' }]);
    expect(errors).toEqual([]);
  });

  it('ends a backlog of more than one batch, each grant once', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const familyId = await make.family({ orgId: professional.orgId });
    await owner.pool.query(
      `insert into client_grant (organization_id, kind, professional_id, family_id, since)
       select $1, 'neutral', $2, $3, now() - interval '2 days' from generate_series(1, 1200)`,
      [professional.orgId, professional.userId, familyId],
    );
    await owner.pool.query(`update client_grant set ends_at = now() - interval '1 day'`);
    const { counts } = await startMaintenance(database.urls.worker);

    await vi.waitFor(() => expect(counts.ended).toBe(1200), 10_000);
  });

  it('is done by one process at a time, and taken over when that one is gone', async () => {
    const { database } = await setupDatabase();
    const first = await startMaintenance(database.urls.worker);
    const second = await startMaintenance(database.urls.worker);
    await vi.waitFor(() => expect(first.counts.rounds).toBeGreaterThan(3), 10_000);
    expect(second.counts.rounds).toBe(0);

    await first.maintenance.stop();

    await vi.waitFor(() => expect(second.counts.rounds).toBeGreaterThan(0), 10_000);
  });

  it('goes on by itself after its connection was cut', async () => {
    const { database, owner } = await setupDatabase();
    const { counts, errors } = await startMaintenance(database.urls.worker);
    await owner.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'org-api-maintenance' and datname = current_database()`,
    );
    const before = counts.rounds;

    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(before + 1), 10_000);
    expect(errors.length).toBeLessThanOrEqual(2);
  });

  it('drops whole months of the activity log that are older than the retention, and keeps partitions ahead', async () => {
    const { database, owner, make } = await setupDatabase();
    const organizationId = await make.organization();
    await owner.pool.query(
      `create table activity_2020_01 partition of activity for values from ('2020-01-01Z') to ('2020-02-01Z')`,
    );
    for (const at of ['2020-01-15Z', '2019-05-05Z', 'now']) {
      await owner.pool.query('insert into activity (id, at, organization_id, action) values ($1, $2, $3, $4)', [
        randomUUID(),
        at,
        organizationId,
        'test',
      ]);
    }
    await owner.pool.query(`drop table ${(await partitions(owner)).at(-1)}`);

    await startMaintenance(database.urls.worker, 365);

    const { rows } = await owner.pool.query<{ count: string }>('select count(*) from activity');
    expect(rows[0]?.count).toBe('1');
    const left = await partitions(owner);
    expect(left).not.toContain('activity_2020_01');
    expect(left).toHaveLength(4);
  });
});

/** The log's monthly partitions, ordered. */
async function partitions(owner: Awaited<ReturnType<typeof setupDatabase>>['owner']): Promise<string[]> {
  const { rows } = await owner.pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'activity'::regclass and c.relname ~ '\\d' order by 1`,
  );
  return rows.map(({ name }) => name);
}
