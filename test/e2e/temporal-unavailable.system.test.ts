import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker, testNamespace, workerEnvironment } from '#test/worker.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';

const timeout = 120_000;
const patient = { timeout: 60_000, interval: 100 };

it('a worker that starts before Temporal is alive and not ready, and delivers once Temporal is there', {
  timeout,
}, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const port = await getFreePort();
  const address = `127.0.0.1:${port}`;
  const { metricsUrl, logLines } = await startTestWorker(database, { TEMPORAL_ADDRESS: address });
  const readStatus = async (page: string) => (await fetch(`${metricsUrl}${page}`)).status;
  await make.grant({ professional });

  expect(await readStatus('/livez')).toBe(200);
  expect(await readStatus('/readyz')).toBe(503);
  expect(await readStatus('/metrics')).toBe(200);
  expect(logLines.join('')).toContain(
    `Temporal does not answer at ${address}: start it, or correct TEMPORAL_ADDRESS or the settings of TEMPORAL_TLS; ` +
      'tried again in 0.25 s',
  );
  expect(receiver.received).toHaveLength(0);

  const stateFolder = temporaryFolder();
  chmodSync(stateFolder, 0o711);
  const options = { stateFolder, namespaces: [testNamespace()], port, report: () => {} };
  const temporal = await startTemporal(options);
  onTestFinished(() => temporal.stop());
  allowSockets('test', temporal.http); // the start asks there whether it is ready

  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  await vi.waitFor(async () => expect(await readStatus('/readyz')).toBe(200), patient);
});

it('a worker whose connection to Temporal falls silent opens another one, and delivers', { timeout }, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const [host = '', port] = inject('temporalAddress').split(':');
  const proxy = await startTcpProxy({ host, port: Number(port) });
  const settings = { TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` };
  const { logLines } = await startTestWorker(database, settings);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);

  proxy.silence();
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), patient);
  // Without it, the SDK notices after 45 s.
  expect(logLines.join('')).toContain('2 calls in a row got no answer, and another connection does');
});

it('a worker whose namespace does not exist prints the command that creates it', { timeout }, async () => {
  const { database } = await setupDatabase();
  const { logLines } = await startTestWorker(database, { TEMPORAL_NAMESPACE: 'not-created' });
  expect(logLines.join('')).toContain('temporal operator namespace create --namespace not-created');
});

it('a worker that waits for Temporal stops cleanly on SIGTERM', { timeout }, async () => {
  const { database } = await setupDatabase();
  const settings = { TEMPORAL_ADDRESS: `127.0.0.1:${await getFreePort()}` };
  const program = fileURLToPath(new URL('../../apps/worker/main.ts', import.meta.url));
  const child = spawn(process.execPath, [program], {
    env: { ...childEnvironment, ...workerEnvironment(database, settings) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await vi.waitFor(() => expect(output).toContain('the worker is running'), patient);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});
