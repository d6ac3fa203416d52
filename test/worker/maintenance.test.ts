import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AuditAnchor } from '#domain/audit-log/chain.ts';
import type { Database } from '#domain/db/database.ts';
import { readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { purgeBatchSize } from '#domain/webhooks/limits.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { rejectWritesOnOpenConnections, setupFailover } from '#test/read-only.ts';
import { setupDatabase } from '#test/setup.ts';
import { insertSettled, openAs, openPool } from '#test/webhook-rows.ts';
import { workerEnvironment } from '#test/worker.ts';
import { readConfig } from '../../apps/worker/config.ts';
import { Maintenance } from '../../apps/worker/maintenance.ts';

/** A started maintenance loop of a new database, with only the worker's login. */
async function startMaintenance(databaseUrl: string, retentionDays = 730, isAnchorSent = true) {
  const errors: unknown[] = [];
  const failed: Record<string, number> = {};
  const counts = { ended: 0, rounds: 0, deliveries: 0, events: 0 };
  const anchors: AuditAnchor[] = [];
  const maintenance = new Maintenance({
    server: parsePostgresUrl(databaseUrl),
    auditLogRetentionDays: retentionDays,
    deliveryRetentionDays: 90,
    suspendAfterSeconds: 72 * 3_600,
    everyMs: 50,
    onEnded: (grants) => {
      counts.ended += grants;
    },
    onAnchor: (anchor) => anchors.push(anchor),
    sendAnchors: async () => isAnchorSent,
    onPurged: ({ deliveries, events }) => {
      counts.deliveries += deliveries;
      counts.events += events;
    },
    onRun: () => {
      counts.rounds += 1;
    },
    onError: (cause, step) => {
      errors.push(cause);
      if (step !== null) failed[step] = (failed[step] ?? 0) + 1;
    },
  });
  await maintenance.start();
  onTestFinished(() => maintenance.stop());
  return { maintenance, counts, errors, failed, anchors };
}

/**
 * Makes a grant due. One inserted past its end is ended at the insert, and leaves nothing to do.
 */
const comesToItsEnd = (owner: Pick<Database, 'pool'>, { id }: { id: string }) =>
  owner.pool.query('update client_grant set ends_at = now() where id = $1', [id]);

/** Lets the time of a step come, of all by default. */
const makeDue = (owner: Pick<Database, 'pool'>, step: string | null = null) =>
  owner.pool.query('update maintenance_step set due_at = now() where $1::text is null or name = $1', [step]);

const childFile = fileURLToPath(new URL('maintenance-child.ts', import.meta.url));

describe('the maintenance loop', () => {
  it('sends anchors again until the log system has accepted them', async () => {
    const { database, owner, make } = await setupDatabase();
    const orgId = await make.organization();
    await owner.pool.query(`insert into audit_entry (organization_id, action) values ($1, 'test')`, [orgId]);
    for (const isSent of [false, false, true]) {
      await makeDue(owner);
      const run = await startMaintenance(database.urls.worker, 730, isSent);
      await vi.waitFor(() => expect(run.anchors).toMatchObject([{ organizationId: orgId, length: 1 }]), {
        timeout: 20_000,
      });
      await run.maintenance.stop();
      const { rows } = await owner.pool.query('select anchored_length::int as length from audit_chain');
      expect(rows).toEqual([{ length: isSent ? 1 : 0 }]);
    }
  });

  it('links new entries of the audit log, and logs the end of each chain once a day', async () => {
    const { database, owner, make } = await setupDatabase();
    const orgId = await make.organization();
    const write = () =>
      owner.pool.query(`insert into audit_entry (organization_id, action) values ($1, 'test')`, [orgId]);
    const lengths = async () =>
      (await owner.pool.query('select length::int from audit_chain where organization_id = $1', [orgId])).rows;
    await write();
    const first = await startMaintenance(database.urls.worker);
    await vi.waitFor(async () => expect(await lengths()).toEqual([{ length: 1 }]), { timeout: 20_000 });
    await first.maintenance.stop();
    await makeDue(owner);
    const second = await startMaintenance(database.urls.worker);
    const anchored = [...first.anchors, ...second.anchors];
    expect(anchored).toMatchObject([
      { organizationId: orgId, length: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    await write();
    await vi.waitFor(async () => expect(await lengths()).toEqual([{ length: 2 }]), { timeout: 20_000 });
    await second.maintenance.stop();
    await makeDue(owner);
    const third = await startMaintenance(database.urls.worker);
    await third.maintenance.stop();
    expect(third.anchors).toEqual([]);
    await makeDue(owner);
    await owner.pool.query(`update audit_chain set anchored_on = anchored_on - 1`);
    expect((await startMaintenance(database.urls.worker)).anchors).toMatchObject([{ length: 2 }]);
    expect([first.errors, second.errors]).toEqual([[], []]);
  });

  it('ends access whose end has passed, with reason ended, and its seat with it', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const due = await make.grant({ professional });
    const open = await make.grant({ professional, endsAt: new Date(Date.now() + 3_600_000) });
    const seat = await make.seat({ orgId: professional.orgId, grant: due });
    await comesToItsEnd(owner, due);
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

  it('begins access whose time has come, with both events of what ended meanwhile', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const since = new Date(Date.now() + 86_400_000);
    const [due, over, later] = [
      await make.grant({ professional, since }),
      await make.grant({ professional, since }),
      await make.grant({ professional, since }),
    ];
    await owner.pool.query(`update client_grant set since = now() - interval '2 hours' where id in ($1, $2)`, [
      due.id,
      over.id,
    ]);
    await owner.pool.query(`update client_grant set ends_at = now() - interval '1 hour' where id = $1`, [over.id]);
    const { errors } = await startMaintenance(database.urls.worker);

    await vi.waitFor(async () => {
      const { rows } = await owner.pool.query<{ id: string; status: string; events: string[] }>(
        `select id, status, array(select e.type from event e where e.subject_id = g.id order by e.id) as events
         from client_grant g order by array_position($1::uuid[], id)`,
        [[due.id, over.id, later.id]],
      );
      expect(rows).toEqual([
        { id: due.id, status: 'active', events: ['client.started'] },
        { id: over.id, status: 'ended', events: ['client.started', 'client.ended'] },
        { id: later.id, status: 'scheduled', events: [] },
      ]);
    }, 10_000);
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

  it('leaves each step to one process at a time', async () => {
    const { database, owner } = await setupDatabase();
    const both = [await startMaintenance(database.urls.worker), await startMaintenance(database.urls.worker)];
    const { rows } = await owner.pool.query('select count(*)::int as count from maintenance_step where due_at > now()');
    expect(rows[0].count).toBeGreaterThan(5); // those of each hour, which one of them did
    await owner.pool.query(`update maintenance_step set due_at = now() + interval '1 minute'`);
    await owner.pool.query(`drop table ${(await partitions(owner)).at(-1)}`);
    await makeDue(owner, 'keep_partitions');
    await vi.waitFor(async () => expect(await partitions(owner)).toHaveLength(4), 10_000);
    await Promise.all(both.map(({ maintenance }) => maintenance.stop()));
    expect(both.flatMap(({ errors }) => errors)).toEqual([]);
  });

  it('continues beside a stopped process, which holds one step for a minute at most', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const grant = await make.grant({ professional });
    const blocking = await owner.pool.connect();
    await blocking.query('begin; lock table client_grant in access exclusive mode');
    const child = spawn(process.execPath, [childFile, database.urls.worker], {
      stdio: 'inherit',
      env: childEnvironment,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const waiting = `select from pg_stat_activity where application_name = 'org-api-maintenance'
      and datname = current_database() and wait_event_type = 'Lock'`;
    await vi.waitFor(async () => expect((await owner.pool.query(waiting)).rowCount).toBe(1), 20_000);
    child.kill('SIGSTOP');
    await blocking.query('commit');
    blocking.release();

    await owner.pool.query(`insert into audit_entry (organization_id, action) values ($1, 'test')`, [
      professional.orgId,
    ]);
    await comesToItsEnd(owner, grant);
    const { counts, errors } = await startMaintenance(database.urls.worker);
    const linked = 'select from audit_chain where organization_id = $1';
    await vi.waitFor(
      async () => expect((await owner.pool.query(linked, [professional.orgId])).rowCount).toBe(1),
      10_000,
    );
    expect(counts.ended).toBe(0);
    const { rows } = await owner.pool.query(
      `update maintenance_step set due_at = due_at - interval '60 seconds' where name = 'end_grants'
       returning due_at <= clock_timestamp() as "isFree"`,
    );
    expect(rows).toEqual([{ isFree: true }]);
    await vi.waitFor(() => expect(counts.ended).toBe(1), 10_000);
    expect(errors).toEqual([]);
  });

  it('sums calls beside a change of several tables, in the order of the schema, without a deadlock', async () => {
    const { owner } = await setupDatabase();
    const change = await owner.pool.connect();
    onTestFinished(() => change.release());
    // As `create trigger` locks a table.
    const lock = (table: string) => change.query(`lock table ${table} in share row exclusive mode`);
    await change.query('begin');
    await lock('audit_progress');
    const summed = expect(owner.pool.query('select sum_calls(100)')).resolves.toMatchObject({ rowCount: 1 });
    const waiting = `select from pg_locks where relation = 'audit_progress'::regclass and not granted`;
    await vi.waitFor(async () => expect((await change.query(waiting)).rowCount).toBe(1), 10_000);
    await lock('call_sum');
    await change.query('commit');
    await summed;
  });

  it('continues after its connection was cut', async () => {
    const { database, owner } = await setupDatabase();
    const { counts, errors } = await startMaintenance(database.urls.worker);
    await owner.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'org-api-maintenance'
        and datname = current_database()`,
    );
    const before = counts.rounds;

    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(before + 1), 10_000);
    expect(errors.length).toBeLessThanOrEqual(2);
  });

  it('ends grants within seconds after its server rejected writes on connections that were open', async () => {
    const { database, owner, make } = await setupDatabase();
    const { counts, errors } = await startMaintenance(database.urls.worker);
    const grant = await make.grant({ professional: await make.member() });
    await rejectWritesOnOpenConnections(owner);
    await comesToItsEnd({ pool: openPool(database.ownerUrl, 1) }, grant);
    await vi.waitFor(() => expect(counts.ended).toBe(1), 5_000);
    expect(errors).toMatchObject([{ code: '25006' }]);
  });

  it.each([
    ['standby', '25006'],
    ['full', '53300'],
  ] as const)('ends grants within seconds after its server was %s for a while', async (outage, code) => {
    const { database, owner, make } = await setupDatabase();
    const { counts, errors } = await startMaintenance(database.urls.worker);
    const grant = await make.grant({ professional: await make.member() });
    const setUnavailable = await setupFailover(owner, onTestFinished, outage);
    await setUnavailable(true);
    await vi.waitFor(() => expect(errors.at(-1)).toMatchObject({ code }), 5_000);
    await setUnavailable(false);
    await comesToItsEnd(owner, grant);
    await vi.waitFor(() => expect(counts.ended).toBe(1), 5_000);
  });

  it('carries out what is due within seconds after the clock was set back by an hour', async () => {
    const { database, owner, make } = await setupDatabase();
    const first = await startMaintenance(database.urls.worker);
    await first.maintenance.stop();
    await owner.pool.query(
      `update maintenance_step set due_at = due_at + interval '1 hour', set_at = set_at + interval '1 hour'`,
    );
    await comesToItsEnd(owner, await make.grant({ professional: await make.member() }));
    await owner.pool.query(`drop table ${(await partitions(owner)).at(-1)}`); // the step of each hour creates it
    const { counts, errors } = await startMaintenance(database.urls.worker);
    await vi.waitFor(() => expect(counts.ended).toBe(1), 10_000);
    await vi.waitFor(async () => expect(await partitions(owner)).toHaveLength(4), 10_000);
    expect(errors).toEqual([]);
  });

  it('reports a run only when it carried out a step', async () => {
    const { database, owner } = await setupDatabase();
    const { counts } = await startMaintenance(database.urls.worker);
    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(2), 10_000);
    const never = `update maintenance_step set due_at = now() + interval '1 hour'`;
    // Again until no step that was claimed meanwhile is due.
    const due = 'select from maintenance_step where due_at < now()';
    await vi.waitFor(async () => {
      await owner.pool.query(never);
      const before = counts.rounds;
      const looks = new Set<string>();
      await vi.waitFor(async () => {
        const { rows } = await owner.pool.query<{ at: string }>(
          `select query_start::text as at from pg_stat_activity
            where application_name = 'org-api-maintenance' and datname = current_database()`,
        );
        looks.add(rows[0]?.at ?? '');
        expect(looks.size).toBeGreaterThan(3);
      }, 10_000);
      expect((await owner.pool.query(due)).rowCount).toBe(0);
      expect(counts.rounds).toBe(before);
    }, 30_000);
  });

  it('has one connection at most, whatever fails after it was opened', async () => {
    const { database, owner } = await setupDatabase();
    await owner.pool.query('revoke insert on maintenance_step from org_api_worker');
    const { counts, errors } = await startMaintenance(database.urls.worker);
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(10), 20_000);
    // One that is being opened may stand beside one that is being closed.
    const open = `select from pg_stat_activity
      where application_name = 'org-api-maintenance' and datname = current_database()`;
    await vi.waitFor(async () => expect((await owner.pool.query(open)).rowCount).toBeLessThanOrEqual(2), 5_000);
    await owner.pool.query('grant insert on maintenance_step to org_api_worker');
    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(0), 10_000);
    expect(errors.map((cause) => (cause as { code?: string }).code)).toEqual(errors.map(() => '42501'));
  });

  it('runs all other steps when one keeps failing, reports that one, and runs it too once it works', async () => {
    const { database, owner, make } = await setupDatabase();
    const professional = await make.member();
    const due = await make.grant({ professional });
    await comesToItsEnd(owner, due);
    await owner.pool.query(
      `create function reject() returns trigger language plpgsql as $$ begin raise exception 'a bad row' using
        errcode = '23514'; end $$;
       create trigger reject before update on client_grant for each row execute function reject()`,
    );
    const paused = await make.webhook({ orgId: professional.orgId });
    await make.delivery({ webhook: paused });
    await owner.pool.query(`update webhook set state = 'paused' where id = $1`, [paused.id]);
    await owner.pool.query(
      `insert into webhook_secret (organization_id, webhook_id, sealed, valid_until)
        values ($1, $2, 'x', now() - interval '1 second')`,
      [paused.orgId, paused.id],
    );
    const failing = await make.webhook({ orgId: professional.orgId });
    await owner.pool.query(
      `update receiver set failing_since = now() - interval '73 hours', exhausted_in_row = 2 where webhook_id = $1`,
      [failing.id],
    );
    await owner.pool.query(`drop table ${(await partitions(owner)).at(-1)}`);
    const { counts, failed, errors } = await startMaintenance(database.urls.worker);

    await vi.waitFor(() => expect(failed.end_grants).toBeGreaterThan(1), 10_000);
    expect(failed).toEqual({ end_grants: failed.end_grants });
    expect(errors.map((cause) => (cause as { code?: string }).code)).toEqual(errors.map(() => '23514'));
    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(2), 10_000); // the loop continues
    await vi.waitFor(async () => {
      const { rows } = await owner.pool.query(`select state from webhook order by state`);
      expect(rows).toEqual([{ state: 'paused' }, { state: 'suspended' }]);
    }, 10_000);
    const secrets = await owner.pool.query('select from webhook_secret where valid_until is not null');
    expect(secrets.rowCount).toBe(0);
    expect(await partitions(owner)).toHaveLength(4);

    await owner.pool.query('drop trigger reject on client_grant');
    await vi.waitFor(async () => {
      const { rows } = await owner.pool.query('select status from client_grant where id = $1', [due.id]);
      expect(rows).toEqual([{ status: 'ended' }]);
    }, 10_000);
  });

  it('deletes settled deliveries older than their retention in parts, and runs the other steps in between', async () => {
    const { database, owner, make } = await setupDatabase();
    const webhook = await make.webhook();
    const count = purgeBatchSize * 2 + 10;
    await insertSettled(owner.pool, webhook, count);
    await owner.pool.query(`update webhook set state = 'paused'`);
    const held = await make.delivery({
      webhook,
      createdAt: new Date(Date.now() - 400 * 86_400_000),
    });
    const worker = await openAs(database.urls.worker, 1);
    await rollUpLedger(worker, { settledForSeconds: 0 });
    const before = await readLedger(worker);

    const { counts, errors } = await startMaintenance(database.urls.worker);

    await vi.waitFor(() => expect(counts).toMatchObject({ deliveries: count, events: count }), 30_000);
    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThanOrEqual(3), 10_000);
    expect(errors).toEqual([]);
    const { rows } = await owner.pool.query('select event_id from delivery');
    expect(rows).toEqual([{ event_id: held }]);
    expect(await readLedger(worker)).toEqual(before);
  });

  it('drops whole months of the audit log that are older than the retention, and creates partitions ahead', async () => {
    const { database, owner, make } = await setupDatabase();
    const organizationId = await make.organization();
    await owner.pool.query(
      `create table audit_entry_2020_01 partition of audit_entry for values from ('2020-01-01Z') to ('2020-02-01Z')`,
    );
    for (const at of ['2020-01-15Z', '2019-05-05Z', 'now']) {
      await owner.pool.query('insert into audit_entry (id, at, organization_id, action) values ($1, $2, $3, $4)', [
        randomUUID(),
        at,
        organizationId,
        'test',
      ]);
    }
    await owner.pool.query(`drop table ${(await partitions(owner)).at(-1)}`);

    await startMaintenance(database.urls.worker, 365);

    const { rows } = await owner.pool.query<{ count: string }>('select count(*) from audit_entry');
    expect(rows[0]?.count).toBe('1');
    const left = await partitions(owner);
    expect(left).not.toContain('audit_entry_2020_01');
    expect(left).toHaveLength(4);
  });
});

describe('DELIVERY_RETENTION', () => {
  it('is 90 days by default, and never shorter than deliveries can be redelivered', async () => {
    const { database } = await setupDatabase();
    const read = (settings: Record<string, string>) =>
      readConfig(workerEnvironment(database, settings)).deliveryRetentionDays;
    expect([read({}), read({ DELIVERY_RETENTION: '31d' }), read({ DELIVERY_RETENTION: '400d' })]).toEqual([
      90, 31, 400,
    ]);
    for (const rejected of ['30d', '1d', '0d', '90', 'ever'])
      expect(() => read({ DELIVERY_RETENTION: rejected }), rejected).toThrow(/DELIVERY_RETENTION.* must be/);
  });
});

/** The log's monthly partitions, ordered. */
async function partitions(owner: Awaited<ReturnType<typeof setupDatabase>>['owner']): Promise<string[]> {
  const { rows } = await owner.pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'audit_entry'::regclass and c.relname ~ '\\d' order by 1`,
  );
  return rows.map(({ name }) => name);
}
