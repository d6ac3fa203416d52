/** Where an app listens, and that it connects directly. */
import { expect, it, onTestFinished } from 'vitest';
import { startServer } from '#runtime/http-server.ts';
import { rejectEnvironment } from '#runtime/settings/environment.ts';
import { serverSettings } from '#runtime/settings/server.ts';
import { Settings as OperatorSettings } from '../../apps/operator/config.ts';

it('an app listens on every address, of IPv6 and of IPv4, unless HOST says otherwise', async () => {
  const { HOST } = OperatorSettings.pick({ HOST: true }).parse({});
  const { url, stop } = await startServer({
    handler: (_request, response) => response.end('here'),
    host: HOST,
    port: 0,
  });
  onTestFinished(stop);
  const { port } = new URL(url);

  for (const host of ['127.0.0.1', '[::1]'])
    expect(await (await fetch(`http://${host}:${port}/`)).text(), host).toBe('here');
  expect(serverSettings({ port: 0 }).HOST.parse(undefined)).toBe(HOST);
});

it('an app does not start with a proxy that only some of its connections would use, and names the variable', () => {
  for (const name of ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'grpc_proxy', 'NODE_USE_ENV_PROXY'])
    expect(() => rejectEnvironment({ PATH: '/bin', [name]: 'http://proxy:3128' })).toThrow(
      `${name} is set, but org-api connects to its servers and to receivers directly`,
    );
  expect(() => rejectEnvironment({ HTTPS_PROXY: '', NO_PROXY: 'db' })).not.toThrow();
});

it('an app does not start with a variable that turns off the verification of some certificates', () => {
  expect(() => rejectEnvironment({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toThrow('NODE_TLS_REJECT_UNAUTHORIZED is 0');
  expect(() => rejectEnvironment({ NODE_TLS_REJECT_UNAUTHORIZED: '1' })).not.toThrow();
});
