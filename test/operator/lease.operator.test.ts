import { CoordinationV1Api } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createApis } from '../../apps/operator/kube/client.ts';
import { createElection } from '../../apps/operator/kube/lease.ts';
import { type ApiServer, createNamespace, startApiServer } from './api-server.ts';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

/** Processes that compete for the Lease, and a list of when each began and stopped to lead. */
async function setup(identities: readonly string[]) {
  const namespace = await createNamespace(server);
  const api = createApis({ kubeConfig: server.kubeConfig, deadlineMs: 1_000, onRequest: () => {} })(CoordinationV1Api);
  const log: string[] = [];
  const elections = identities.map((identity) =>
    createElection({
      api,
      namespace,
      name: 'operator',
      identity,
      durationSeconds: 3,
      renewDeadlineMs: 2_000,
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

    server.freeze();
    await vi.waitFor(() => expect(log).toEqual(['a leads', 'a ended']), 20_000);
    server.thaw();

    await vi.waitFor(() => expect(log).toHaveLength(3), 20_000);
    expect(log[2]).toMatch(/^[ab] leads$/);
    await Promise.all([a?.stop(), b?.stop()]);
  });
});
