/** The Python client behind a proxy that the system names, over TLS. */
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '#test/certificates.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import type { ClientSettings } from './driver.ts';
import { startFaultServer } from './fault-server.ts';
import { pythonDrivers } from './python-driver.ts';

const orgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const key = `aln_us_${'k'.repeat(43)}`;
const host = 'us.org-api.example';

/** A server of the region, and a proxy that leads each host to it. */
async function startProxiedServer({ isStalled = false } = {}) {
  const authority = makeCertificate({ subject: 'authority', isAuthority: true });
  const certificate = makeCertificate({ subject: host, names: [host, 'localhost'], issuer: authority });
  const requests: IncomingHttpHeaders[] = [];
  const server = createHttpsServer(certificate, (request, response) => {
    requests.push(request.headers);
    response.writeHead(200, { 'Content-Length': 2 });
    response.write('{');
    if (!isStalled) response.end('}');
  });
  const port = await listenLocally(server);
  const tunnels: { target: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const proxy = createHttpServer();
  proxy.on('connect', (request, socket, head) => {
    tunnels.push({ target: request.url, headers: request.headers });
    const upstream = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const each of [socket, upstream]) each.on('error', () => {});
    socket.on('close', () => upstream.destroy());
  });
  const proxyPort = await listenLocally(proxy);
  const authorityFile = path.join(temporaryFolder(), 'ca.crt');
  writeFileSync(authorityFile, authority.cert);
  return {
    port,
    requests,
    tunnels,
    environment: { SSL_CERT_FILE: authorityFile },
    proxyHost: `127.0.0.1:${proxyPort}`,
  };
}

describe.each(pythonDrivers)('the client in $name, behind a proxy,', ({ create }) => {
  const call = async (settings: ClientSettings) => {
    const client = await create({ key, maxRetries: 0, ...settings });
    if (typeof client === 'string') throw new Error(client);
    return client.call('getOrg', orgId);
  };

  it.each(['http://', ''])('tunnels to the server of its key, and shows the key to that alone (%j)', async (scheme) => {
    const { environment, proxyHost, requests, tunnels } = await startProxiedServer();
    const proxy = `${scheme}partner:p%40ss@${proxyHost}`;
    const result = await call({ environment: { ...environment, https_proxy: proxy } });
    expect(result).toMatchObject({ data: {} });
    expect(requests).toMatchObject([{ host, authorization: `Bearer ${key}` }]);
    expect(requests[0]).not.toHaveProperty('proxy-authorization');
    expect(tunnels).toMatchObject([
      {
        target: `${host}:443`,
        headers: { 'proxy-authorization': `Basic ${Buffer.from('partner:p@ss').toString('base64')}` },
      },
    ]);
    expect(JSON.stringify(tunnels)).not.toContain(key);
  });

  it('ends an attempt whose response does not end in time', async () => {
    const { environment, proxyHost, requests } = await startProxiedServer({ isStalled: true });
    const settings = { timeoutSeconds: 2, environment: { ...environment, https_proxy: `http://${proxyHost}` } };
    expect(await call(settings)).toMatchObject({ error: { code: 'timeout' } });
    expect(requests.length).toBeLessThanOrEqual(1);
  });

  it('uses none for a host of no_proxy, nor for a server on this machine without TLS', async () => {
    const { environment, port, requests } = await startProxiedServer();
    const unused = 'http://127.0.0.1:9'; // where nothing listens
    const variables = { ...environment, https_proxy: unused, http_proxy: unused };
    const baseUrl = `https://localhost:${port}`;
    expect(await call({ baseUrl, environment: { ...variables, no_proxy: 'localhost' } })).toMatchObject({ data: {} });
    expect(requests).toMatchObject([{ host: `localhost:${port}` }]);
    expect(await call({ baseUrl, environment: variables })).toMatchObject({ error: { code: 'connection' } });
    const { url } = await startFaultServer([{ status: 200, body: '{}' }]);
    expect(await call({ baseUrl: url, environment: variables })).toMatchObject({ data: {} });
  });
});
