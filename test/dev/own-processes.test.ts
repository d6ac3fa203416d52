/** What `npm start` takes for ready is a process that it has started itself. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startApp } from '../../apps/dev/app-process.ts';
import { choosePort } from '../../apps/dev/servers/ports.ts';
import { isServerOf } from '../../apps/dev/servers/process.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';

function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-own-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Serves 200 for everything, as another stack's app would. */
async function listenAsAnother(): Promise<number> {
  const server = createServer((_request, response) => response.end('ready')).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

it('an app is not ready when another process answers 200 on its port, and the sentence names the port and the variable', async () => {
  const port = await listenAsAnother();
  const starting = startApp({
    name: 'receiver',
    folder: makeFolder(),
    env: { REGION: 'us', PORT: String(port) },
    readyUrl: `http://127.0.0.1:${port}`,
  });
  await expect(starting).rejects.toThrow(
    new RegExp(`receiver did not become ready .*port ${port}: another process listens there.*ORG_API_PORT`),
  );
});

it('a port that is taken is reported with the variable that sets another', async () => {
  const taken = await listenAsAnother();
  const lines: string[] = [];
  expect(await choosePort(taken, 'us API', (line) => lines.push(line), 'ORG_API_PORT')).not.toBe(taken);
  expect(lines).toEqual([expect.stringMatching(new RegExp(`us API: port ${taken} is taken .*ORG_API_PORT`))]);
});

it('the Temporal of another stack is not adopted where the note of this one leads to it', async () => {
  const start = async (stateFolder: string, lines: string[]) => {
    const report = (line: string) => void lines.push(line);
    const server = await startTemporal({ stateFolder, namespaces: ['same'], inMemory: true, report });
    onTestFinished(() => server.stop());
    return server;
  };
  const first = makeFolder();
  const theirs = await start(first, []);
  const note = JSON.parse(readFileSync(path.join(first, 'temporal/server.json'), 'utf8'));

  const second = makeFolder();
  const folder = path.join(second, 'temporal');
  const store = path.join(folder, 'store.db');
  const program = 'setInterval(() => {}, 1e6)';
  const stray = spawn(process.execPath, ['-e', program, store], { stdio: 'ignore' });
  onTestFinished(() => void stray.kill('SIGKILL'));
  await expect.poll(() => isServerOf(stray.pid ?? 0, store)).toBe(true);
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'server.json'), JSON.stringify({ ...note, pid: stray.pid }));

  const lines: string[] = [];
  const ours = await start(second, lines);
  expect(lines.at(-1)).toContain('Temporal is ready');
  expect(ours.address).not.toBe(theirs.address);
});
