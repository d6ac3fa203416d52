/**
 * A change that commits while Temporal is away is reported correctly: done, and continued in the
 * background.
 */
import { expect, inject, it, vi } from 'vitest';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { callOrgctl, setupOrgctl } from './orgctl.ts';

const timeout = 120_000;

/** An installation, and a Temporal that can go away while others use it. */
async function setupAway() {
  const t = await setupOrgctl();
  const [host = '', port = ''] = inject('temporalAddress').split(':');
  const temporal = await startTcpProxy({ host, port: Number(port) });
  return { ...t, temporal, env: { ...t.env, TEMPORAL_ADDRESS: `127.0.0.1:${temporal.port}` } };
}

it('delivery redeliver --event requests a retry although Temporal goes down before it is notified, and says so', {
  timeout,
}, async () => {
  const t = await setupAway();
  const webhook = await t.make.webhook();
  const event = await t.make.delivery({ webhook, state: 'running', dueAt: new Date(Date.now() + 3_600_000) });
  // The command first checks that Temporal answers. This lock delays it between the check and its
  // change.
  const lock = await t.owner.pool.connect();
  await lock.query('begin');
  await lock.query('select from delivery for update');
  const call = callOrgctl(t.env, ['delivery', 'redeliver', '--webhook', webhook.id, '--event', event]);
  await vi.waitFor(
    async () => {
      const { rows } = await t.owner.pool.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'org-api-orgctl'
          and wait_event_type = 'Lock'`,
      );
      expect(rows).toHaveLength(1);
    },
    { timeout: 30_000, interval: 50 },
  );
  await t.temporal.refuse();
  await lock.query('commit');
  lock.release();

  const called = await call;

  expect(called.stderr).toBe(
    'Temporal could not be notified: the delivery is due now, and the worker starts its ' +
      'attempt within two minutes.\n',
  );
  expect(called).toMatchObject({ code: 0, stdout: `${event}: the next attempt is due now.\n` });
  const { rows } = await t.owner.pool.query('select state, due_at <= now() as due from delivery');
  expect(rows).toEqual([{ state: 'queued', due: true }]);
});

it('redelivery cancel works while Temporal is down or does not know the namespace, and reports what is left', {
  timeout,
}, async () => {
  const t = await setupAway();
  await t.temporal.refuse();
  const webhook = await t.make.webhook();
  const left = ': the redelivery stops after the current batch.\n';
  const calls: [env: Record<string, string>, says: string][] = [
    [t.env, `Temporal does not answer at ${t.env.TEMPORAL_ADDRESS}${left}`],
    [
      { ...t.env, TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: 'there-is-none' },
      `Temporal could not be notified${left}`,
    ],
  ];
  for (const [env, says] of calls) {
    const { rows } = await t.owner.pool.query<{ id: string }>(
      `insert into redelivery (organization_id, webhook_id, failed_since, state)
        values ($1, $2, now() - interval '1 hour', 'running') returning id`,
      [webhook.orgId, webhook.id],
    );
    const id = rows[0]?.id ?? '';

    const cancelled = await callOrgctl(env, ['redelivery', 'cancel', '--id', id]);

    expect(cancelled).toMatchObject({ code: 0, stderr: says });
    expect(cancelled.stdout).toContain('Stopping after the current batch');
    const asked = await t.owner.pool.query(
      'select cancel_requested_at is not null as asked from redelivery where id = $1',
      [id],
    );
    expect(asked.rows).toEqual([{ asked: true }]);
    await t.owner.pool.query('delete from redelivery');
  }
});
