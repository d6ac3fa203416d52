/** The operator's connections to the API server. */
import { createSecureServer } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { CustomObjectsApi } from '@kubernetes/client-node';
import { expect, it, vi } from 'vitest';
import { makeCertificate } from '#test/certificates.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { createApis } from '../../apps/operator/kube/client.ts';
import { ReusedKubeConfig } from '../../apps/operator/kube/kube-config.ts';

/** An API server that knows HTTP/2, as Kubernetes', and answers unless it is silent. */
async function setup(deadlineMs = 30_000) {
  const connections: TLSSocket[] = [];
  const waiting: (() => void)[] = [];
  const server = createSecureServer({ ...makeCertificate({ subject: 'server' }), allowHTTP1: true }, (_, response) => {
    const respond = () => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[]}');
    if (t.isSilent) waiting.push(respond);
    else respond();
  });
  server.on('secureConnection', (socket) => connections.push(socket));
  const kubeConfig = new ReusedKubeConfig();
  const address = `https://127.0.0.1:${await listenLocally(server)}`;
  kubeConfig.loadFromClusterAndUser({ name: 'test', server: address, skipTLSVerify: true }, { name: 'operator' });
  const api = createApis({ kubeConfig, deadlineMs, onRequest: () => {} })(CustomObjectsApi);
  const t = {
    isSilent: false,
    connections,
    waiting,
    list: () => api.listClusterCustomObject({ group: 'orgapi.dev', version: 'v1', plural: 'regions' }),
  };
  return t;
}

it('requests share connections of HTTP/1.1, about one for each that is under way', async () => {
  const t = await setup();

  for (let sent = 0; sent < 20; sent += 1) await t.list();
  expect(t.connections.length).toBeLessThan(10); // a connection is free a moment after its response

  await Promise.all(Array.from({ length: 5 }, t.list));
  expect(t.connections.length).toBeLessThan(15);
  expect(new Set(t.connections.map(({ alpnProtocol }) => alpnProtocol))).toEqual(new Set(['http/1.1']));
});

it('a request that is not answered in time ends with its connection, and the next one is answered', async () => {
  const t = await setup(300);
  t.isSilent = true;

  await expect(t.list()).rejects.toThrow(/timeout/);
  await vi.waitFor(() => expect(t.connections[0]?.destroyed).toBe(true), { timeout: 30_000 });

  t.isSilent = false;
  await vi.waitFor(async () => expect(await t.list()).toEqual({ items: [] }), { timeout: 30_000 });
});
