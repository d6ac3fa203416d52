import { CoordinationV1Api } from '@kubernetes/client-node';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createNamespace } from '#test/api-server.ts';
import { createApis } from '../../apps/operator/kube/client.ts';
import { Election } from '../../apps/operator/kube/lease.ts';
import { setupDeclared } from './declared.ts';
import { shareApiServer } from './share-api-server.ts';
import { startSlowApiServer } from './slow-api-server.ts';

const server = shareApiServer();

const renewDeadlineMs = 2_000;

/**
 * Processes that compete for the Lease, and a list of when each began and stopped to lead. The
 * first one reaches the API server by `kubeConfig`.
 */
async function setup(identities: readonly string[], kubeConfig = server().kubeConfig) {
  const namespace = await createNamespace(server());
  const log: string[] = [];
  const elections = identities.map(
    (identity, index) =>
      new Election({
        api: createApis({
          kubeConfig: index === 0 ? kubeConfig : server().kubeConfig,
          deadlineMs: renewDeadlineMs,
          onRequest: () => {},
        })(CoordinationV1Api),
        namespace,
        name: 'operator',
        identity,
        durationSeconds: 3,
        renewDeadlineMs,
        retryMs: 200,
        onError: () => {},
        lead: async (signal) => {
          log.push(`${identity} leads`);
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          log.push(`${identity} ended`);
        },
      }),
  );
  return { log, elections };
}

describe('leader election', () => {
  it('has one leader, and the other process takes over when it stops', async () => {
    const { log, elections } = await setup(['a', 'b']);
    const [a, b] = elections;
    a?.start();
    await vi.waitFor(() => expect(log).toEqual(['a leads']), 20_000);
    b?.start();

    await a?.stop();

    await vi.waitFor(() => expect(log).toEqual(['a leads', 'a ended', 'b leads']), 20_000);
    await b?.stop();
  });

  it('ends leading before another process can begin when the API server does not answer', async () => {
    const { log, elections } = await setup(['a', 'b']);
    const [a, b] = elections;
    a?.start();
    await vi.waitFor(() => expect(log).toEqual(['a leads']), 20_000);
    b?.start();

    server().freeze();
    onTestFinished(() => server().thaw());
    await vi.waitFor(() => expect(log).toEqual(['a leads', 'a ended']), 20_000);
    server().thaw();

    await vi.waitFor(() => expect(log).toHaveLength(3), 20_000);
    expect(log[2]).toMatch(/^[ab] leads$/);
    await Promise.all([a?.stop(), b?.stop()]);
  });

  it('has one leader at a time behind an API server that is slow', async () => {
    const slow = await startSlowApiServer(server());
    const { log, elections } = await setup(['a', 'b'], slow.kubeConfig);
    const [a, b] = elections;
    a?.start();
    await vi.waitFor(() => expect(log).toEqual(['a leads']), 20_000);
    b?.start();

    slow.delayMs = 1_500;

    await vi.waitFor(() => expect(log).toContain('b leads'), 20_000);
    expect(log).toEqual(['a leads', 'a ended', 'b leads']);
    slow.delayMs = 0;
    await Promise.all([a?.stop(), b?.stop()]);
  });
});

describe('a leader that stops in the middle of an action', () => {
  /** Longer than the test: what waits for it does not end by itself. */
  const deadlineMs = 200_000;

  it('ends its statement, and nothing of its transaction is stored', async () => {
    const t = await setupDeclared(server());
    const held = await t.owner.pool.connect();
    onTestFinished(() => held.release(true));
    await held.query('begin');
    await held.query('lock table webhook in exclusive mode');
    await t.declare();
    const controllers = await t.start(['*'], { deadlineMs });
    const waiting = `select from pg_stat_activity
      where application_name = 'operator' and wait_event_type = 'Lock' and datname = current_database()`;
    await vi.waitFor(async () => expect(await t.rows(waiting)).toHaveLength(1), 20_000);

    await withDeadline(controllers.stop());

    await vi.waitFor(async () => expect(await t.rows(waiting)).toHaveLength(0), 20_000);
    await held.query('rollback');
    expect(await t.rows('select from webhook')).toHaveLength(0);
  });

  it('ends its request to the API server', async () => {
    const slow = await startSlowApiServer(server());
    const t = await setupDeclared(server());
    const controllers = await t.start(['*'], { deadlineMs, kubeConfig: slow.kubeConfig });
    slow.delayMs = deadlineMs;
    await t.declare();
    await vi.waitFor(() => expect([...slow.waiting].join()).toContain('PATCH'), 20_000);

    await withDeadline(controllers.stop());

    expect((await t.read()).metadata.finalizers).toBeUndefined();
  });
});

/** @throws Error unless the work ends soon. */
const withDeadline = (work: Promise<void>): Promise<void> =>
  Promise.race([
    work,
    new Promise<void>((_, reject) => void setTimeout(reject, 20_000, new Error('it did not end')).unref()),
  ]);
