import { CoreV1Api, CustomObjectsApi, EventsV1Api } from '@kubernetes/client-node';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createKubeConfig, createNamespace } from '#test/api-server.ts';
import { condition } from '../../apps/operator/controller/conditions.ts';
import { Runner } from '../../apps/operator/controller/runner.ts';
import { createApis, findStatus, type SentRequest } from '../../apps/operator/kube/client.ts';
import { type Controller, ReconcileError } from '../../apps/operator/kube/custom-resource.ts';
import { createEvents } from '../../apps/operator/kube/events.ts';
import { kinds, type Region } from '../../apps/operator/kube/resources.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { regionIn } from './region.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

type Write = { kind: 'write'; version: string };

/** Runs a controller that copies the version of a Region into a ConfigMap, through a proxy. */
async function setup({ forbidden = '' } = {}) {
  const namespace = await createNamespace(server());
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: server().port });
  const kubeConfig = createKubeConfig(proxy.port, 'operator', 'operator-token');
  const requests: SentRequest[] = [];
  const apis = createApis({ kubeConfig, deadlineMs: 2_000, onRequest: (request) => requests.push(request) });
  const core = apis(CoreV1Api);
  const name = 'copy';
  const controller: Controller<Region, string | null, Write> = {
    kind: kinds.Region,
    resyncMs: 100,
    async observe() {
      const copy = await core.readNamespacedConfigMap({ namespace, name }).catch((cause: unknown) => {
        if (findStatus(cause) === 404) return null;
        throw cause;
      });
      return copy?.data?.version ?? null;
    },
    plan({ spec: { release } }, copied) {
      return release.version === copied ? [] : [{ kind: 'write', version: release.version }];
    },
    async execute({ version }) {
      if (version === forbidden) throw new ReconcileError('Rejected', `${version} is not allowed.`);
      await server().apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { version } });
    },
    describe: ({ version }) => ({ reason: 'Copied', message: `The version is ${version} now.` }),
    report: (_, copied, [failure]) => ({
      schema: { applied: copied ?? 'none' },
      conditions: [
        condition('Ready', failure === undefined, failure?.reason ?? 'Applied', failure?.message ?? 'It is.'),
      ],
    }),
  };
  let passes = 0;
  const api = apis(CustomObjectsApi);
  const runner = new Runner({
    controller,
    kubeConfig,
    api,
    namespace,
    recordEvent: createEvents({ api: apis(EventsV1Api), identity: 'test', onError: () => {} }),
    concurrency: 2,
    onListed: () => {},
    onWatchError: () => {},
    onError: () => {},
    onAction: () => {},
    onStatus: () => {},
    onPass: () => {
      passes += 1;
    },
  });
  await runner.start();
  const leading = new AbortController();
  const ended = runner.lead(leading.signal);
  onTestFinished(async () => {
    leading.abort();
    await ended;
    await runner.stop();
  });
  const { group, version, plural } = kinds.Region;
  return {
    namespace,
    proxy,
    requests,
    countPasses: () => passes,
    apply: (release: string) => server().apply(regionIn(namespace, { release: { version: release } })),
    async readStatus() {
      const request = { group, version, plural, namespace, name: 'region' };
      const direct = server().kubeConfig.makeApiClient(CustomObjectsApi);
      return ((await direct.getNamespacedCustomObject(request)) as Region).status;
    },
    async listEvents() {
      const { items } = await server().kubeConfig.makeApiClient(EventsV1Api).listNamespacedEvent({ namespace });
      return items.map(({ reason, type }) => `${type} ${reason}`);
    },
  };
}

const waiting = { timeout: 30_000, interval: 50 };

describe('a controller', () => {
  it('carries out its plan, records an Event, and writes status for the generation that it saw', async () => {
    const { apply, readStatus, listEvents } = await setup();

    await apply('1');

    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe('1'), waiting);
    const status = await readStatus();
    expect(status?.observedGeneration).toBe(1);
    expect(status?.conditions?.[0]).toMatchObject({ type: 'Ready', status: 'True', observedGeneration: 1 });
    expect(await listEvents()).toEqual(['Normal Copied']);
  });

  it('writes nothing while its objects are as declared', async () => {
    const { apply, readStatus, requests, countPasses } = await setup();
    await apply('1');
    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe('1'), waiting);
    await vi.waitFor(() => expect(countPasses()).toBeGreaterThan(2), waiting);
    const before = requests.length;
    const from = countPasses();

    await vi.waitFor(() => expect(countPasses()).toBeGreaterThan(from + 3), waiting);

    expect(requests.slice(before).filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('sees what changed while the API server was unavailable', async () => {
    const { apply, readStatus, proxy } = await setup();
    await apply('1');
    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe('1'), waiting);

    await proxy.reject();
    await apply('2');
    await proxy.resume();

    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe('2'), waiting);
  });

  it('repeats what fails at least as often as it looks at what does not', async () => {
    const { apply, countPasses } = await setup({ forbidden: '2' });
    await apply('2');

    await vi.waitFor(() => expect(countPasses()).toBeGreaterThan(20), waiting);
  });

  it('shows a failure in a condition and one Event, and continues when the spec changes', async () => {
    const { apply, readStatus, listEvents } = await setup({ forbidden: '2' });
    await apply('2');
    const ready = async () => (await readStatus())?.conditions?.[0];
    await vi.waitFor(async () => expect(await ready()).toMatchObject({ status: 'False', reason: 'Rejected' }), waiting);

    await apply('3');

    await vi.waitFor(async () => expect(await ready()).toMatchObject({ status: 'True', reason: 'Applied' }), waiting);
    expect((await listEvents()).sort()).toEqual(['Normal Copied', 'Warning Rejected']);
  });
});
