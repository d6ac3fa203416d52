/**
 * Temporal behind TLS, with a client certificate and an API key, as Temporal Cloud and frontends
 * with mutual TLS require.
 */
import type { Client } from '@temporalio/client';
import { type NativeConnection, Worker } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { connectToTemporal, followApiKey, TemporalLink } from '#delivery/connect-temporal.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import type { TemporalServer, TemporalTls } from '#runtime/settings/temporal.ts';
import { makeCertificate } from '#test/certificates.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { frontName, mountSettings, startTemporalFront } from '#test/temporal-front.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { openWorkflowClient } from '#workflows/client.ts';
import { isUnavailable } from '#workflows/connection.ts';
import { readConfig as readOrgctl } from '../../apps/orgctl/config.ts';

const patient = { timeout: 30_000, interval: 100 };
const timeout = 90_000;

it('a worker delivers through a server that requires a certificate and a key, and continues when the key changes', {
  timeout,
}, async () => {
  const { database, make } = await setupDatabase();
  const front = await startTemporalFront(inject('temporalAddress'));
  front.letIn(['first-key']);
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const key = mountSecret({ TEMPORAL_API_KEY: 'first-key' });
  const { logLines } = await startTestWorker(database, { ...mountSettings(front), ...key.settings });

  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  expect([...front.protocols]).toEqual(['h2']);

  front.letIn(['first-key', 'second-key']);
  key.replace({ TEMPORAL_API_KEY: 'second-key' });
  await vi.waitFor(() => expect(front.apiKeys).toContain('second-key'), patient);
  expect(logLines.join('')).not.toMatch(/first-key|second-key/);
  front.letIn(['second-key']);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), patient);
});

describe('a connection to Temporal that falls silent is replaced', () => {
  it('after two calls of either kind, whose errors say that Temporal is unavailable', { timeout }, async () => {
    for (const kind of ['client', 'workflowService'] as const) {
      const { link, connection, replace } = await openLink();
      const errors = await replace(kind);
      expect(errors.map(isUnavailable), kind).toEqual([true, true]);
      expect(link.connection, kind).not.toBe(connection);
      await link.close();
    }
  });

  it('and the one that opened while the worker ended is closed', { timeout }, async () => {
    const { link, connection, server, opened, replace } = await openLink((next) => {
      worker.connection = next;
    });
    const queue = { namespace: server.namespace, taskQueue: 'ends' };
    const worker = await Worker.create({ ...queue, connection, activities: { unused: async () => {} } });
    await worker.runUntil(async () => {});
    await replace('client');
    expect(link.connection).toBe(connection);
    await link.close();
    for (const closed of [connection, ...opened]) await expect(closed.close()).rejects.toThrow(/closed/i);
  });

  it('and the new one gets the API key that its file has, like the one before', { timeout }, async () => {
    let key = 'first-key';
    const { front, link, server, replace } = await openLink(
      () => {
        key = 'third-key';
        followed.runNow(); // sets it on the connection that is replaced
      },
      () => key,
    );
    key = 'second-key'; // between the connection and the first look
    const followed = followApiKey(link, server, () => {});
    onTestFinished(() => followed.stop());
    await followed.start();
    await link.call(listCalls(server).workflowService);
    expect([...front.apiKeys]).toEqual(['first-key', 'second-key']);

    await replace('client');
    await vi.waitFor(async () => {
      await link.call(listCalls(server).workflowService);
      expect(front.apiKeys).toContain('third-key');
    }, patient);
    await followed.stop();
    await link.close();
  });
});

describe('the worker and the workflow client name the settings to correct when a server behind TLS rejects', () => {
  type Change = (server: TemporalServer & { tls: TemporalTls }) => TemporalServer;
  const unreachable = /does not answer at \S+/;
  const cases: [string, Change, RegExp][] = [
    ['plain text', (server) => ({ ...server, tls: null }), unreachable],
    ['no client certificate', ({ tls, ...rest }) => ({ ...rest, tls: { ...tls, own: null } }), unreachable],
    ['no authority', ({ tls, ...rest }) => ({ ...rest, tls: { ...tls, ca: null } }), unreachable],
    ['no API key', (server) => server, /does not let this app into the namespace \S+: it may want TEMPORAL_API_KEY/],
    [
      'another API key',
      (server) => ({ ...server, apiKey: () => 'not-it' }),
      /does not let this app into the namespace \S+: see that TEMPORAL_API_KEY is valid/,
    ],
  ];

  it.each(cases)('%s', { timeout }, async (_, change, sentence) => {
    const front = await startTemporalFront(inject('temporalAddress'));
    front.letIn(['the-key']);
    const { cert, key } = front.client;
    const tls = { serverName: frontName, ca: front.ca, own: { cert, key } };
    const server = change({ address: front.address, namespace: testNamespace(), tls });
    const problem = await problemOfWorker(server);
    expect(problem).toMatch(sentence);
    expect(problem).toMatch(/TEMPORAL_(TLS|API_KEY)/);
    await expect(openWorkflowClient(server)).rejects.toThrow(sentence);
  });

  it('when a server behind TLS uses plain text', { timeout }, async () => {
    const tls = { serverName: null, ca: null, own: null };
    const server = { address: inject('temporalAddress'), namespace: testNamespace(), tls };
    const sentence = /does not answer at \S+ with these TEMPORAL_TLS settings/;
    expect(await problemOfWorker(server)).toMatch(sentence);
    await expect(openWorkflowClient(server)).rejects.toThrow(sentence);
  });
});

/** A call of each kind: the SDK's client wraps the errors of gRPC, and `workflowService` does not. */
const listCalls = ({ namespace }: TemporalServer) => ({
  client: ({ workflow }: Client) => workflow.getHandle('none').describe(),
  workflowService: ({ workflowService }: Client) => workflowService.describeNamespace({ namespace }),
});

/** Opens a link through a proxy. `replace` makes it silent, and returns the errors of the calls that replace it. */
async function openLink(
  onReplaced: (next: NativeConnection) => void = () => {},
  apiKey: TemporalServer['apiKey'] = null,
) {
  const front = await startTemporalFront(inject('temporalAddress'));
  const [host = '', port] = front.address.split(':');
  const proxy = await startTcpProxy({ host, port: Number(port) });
  const { cert, key } = front.client;
  const tls = { serverName: frontName, ca: front.ca, own: { cert, key } };
  const server = { address: `127.0.0.1:${proxy.port}`, namespace: testNamespace(), tls, apiKey };
  const connection = await connectToTemporal({ server, signal: new AbortController().signal, onProblem: () => {} });
  if (connection === null) throw new Error('not connected');
  const opened: NativeConnection[] = [];
  const link = new TemporalLink(connection, {
    server,
    onReplaced(next) {
      opened.push(next);
      onReplaced(next);
    },
    onProblem: () => {},
  });
  const replace = async (kind: 'client' | 'workflowService') => {
    proxy.silence();
    const send: (client: Client) => Promise<unknown> = listCalls(server)[kind];
    const errors = await Promise.all([link.call(send), link.call(send)].map((call) => call.catch((cause) => cause)));
    await vi.waitFor(() => expect(opened).toHaveLength(1), patient);
    return errors;
  };
  return { front, server, link, connection, opened, replace };
}

/** Returns a worker's message about its first connection. */
async function problemOfWorker(server: TemporalServer): Promise<string> {
  const trying = new AbortController();
  return new Promise((resolve, reject) => {
    const onProblem = (sentence: string) => {
      trying.abort();
      resolve(sentence);
    };
    connectToTemporal({ server, signal: trying.signal, onProblem }).then(
      () => resolve('it connected'),
      (cause: Error) => reject(cause),
    );
  });
}

describe('incomplete settings are rejected', () => {
  const { cert, key } = makeCertificate({ subject: 'Ours' });
  const other = makeCertificate({ subject: 'Another' });
  const tls = { TEMPORAL_TLS: 'true' };
  const cases: [string, Record<string, string>, RegExp][] = [
    ['a certificate without its key', { ...tls, TEMPORAL_TLS_CERT: cert }, /TEMPORAL_TLS_KEY is missing/],
    ['a key without its certificate', { ...tls, TEMPORAL_TLS_KEY: key }, /TEMPORAL_TLS_CERT is missing/],
    [
      'a key of another certificate',
      { ...tls, TEMPORAL_TLS_CERT: cert, TEMPORAL_TLS_KEY: other.key },
      /TEMPORAL_TLS_KEY is not the private key of TEMPORAL_TLS_CERT/,
    ],
    ['an authority that is none', { ...tls, TEMPORAL_TLS_CA: 'MII' }, /TEMPORAL_TLS_CA: must be a certificate in PEM/],
    ['a key that is none', { ...tls, TEMPORAL_TLS_KEY: cert }, /TEMPORAL_TLS_KEY: must be a private key in PEM/],
    ['an API key in plain text', { TEMPORAL_API_KEY: 'k' }, /TEMPORAL_TLS must be true with TEMPORAL_API_KEY/],
    [
      'a certificate with TLS switched off',
      { TEMPORAL_TLS: 'false', TEMPORAL_TLS_CA: cert },
      /TEMPORAL_TLS must be true with TEMPORAL_TLS_CA/,
    ],
    ['TLS that is neither on nor off', { TEMPORAL_TLS: 'yes' }, /TEMPORAL_TLS: must be true or false/],
    [
      'a name with a port',
      { ...tls, TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com:7233' },
      /TEMPORAL_TLS_SERVER_NAME: must be a host name/,
    ],
    ['TLS to no address', { ...tls, TEMPORAL_ADDRESS: '' }, /TEMPORAL_ADDRESS is missing: .* TEMPORAL_TLS is set/],
  ];

  it.each(cases)('%s', (_, settings, sentence) => {
    const needed = { DATABASE_URL: 'postgres://o:p@localhost/org', TEMPORAL_ADDRESS: 'localhost:7233' };
    const read = () => readOrgctl('us', { ORG_API_STATE: '/nonexistent', ...needed, ...settings });
    expect(read).toThrow(sentence);
    expect(read).toThrow(InvalidSettingsError);
    expect(read).not.toThrow(/BEGIN|: k/); // never a value
  });
});
