/** What `npm start` takes for ready is a process that it has started itself. */
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startApp } from '../../apps/dev/app-process.ts';
import { choosePort } from '../../apps/dev/servers/ports.ts';
import { findNoted, spawnDetached, stopNoted } from '../../apps/dev/servers/process.ts';
import { programEnvironment } from '../../apps/dev/servers/program-environment.ts';
import { stopLeftOver } from '../../apps/dev/servers/server-program.ts';
import { identify } from '../../apps/dev/state-lock.mjs';

/** Serves 200 for everything, as another stack's app would. */
const listenAsAnother = () => listenLocally(createServer((_request, response) => response.end('ready')));

it('an app is not ready when another process answers 200 on its port, and the sentence names the port and the variable', async () => {
  const port = await listenAsAnother();
  const starting = startApp({
    region: 'us',
    name: 'receiver',
    folder: temporaryFolder(),
    report: () => {},
    env: { REGION: 'us', PORT: String(port) },
    readyUrl: `http://127.0.0.1:${port}`,
  });
  await expect(starting).rejects.toThrow(
    new RegExp(`us receiver did not start .*port ${port}: another process listens there.*ORG_API_PORT`),
  );
});

it('a port that is taken is reported with the variable that sets another', async () => {
  const taken = await listenAsAnother();
  const lines: string[] = [];
  expect(await choosePort(taken, 'us API', (line) => lines.push(line))).not.toBe(taken);
  expect(lines).toEqual([expect.stringMatching(new RegExp(`us API: port ${taken} is taken .*ORG_API_PORT`))]);
});

it('what a killed start left is stopped, and no other process that has its pid now', async () => {
  const [folder, other] = [temporaryFolder(), temporaryFolder()];
  const launch = { command: 'sleep', args: ['300'], cwd: folder, env: programEnvironment() };
  const left = await spawnDetached(launch, path.join(folder, 'log'), path.join(folder, 'server.pid'));
  onTestFinished(() => left.stop());
  writeFileSync(path.join(other, 'server.pid'), `${left.pid} 0`);

  await stopLeftOver(other);
  expect(identify(left.pid)).not.toBeNull();
  await stopLeftOver(folder);
  expect(identify(left.pid)).toBeNull();
  await stopLeftOver(temporaryFolder()); // of a first start
});

it.each(['', 'x', '812'])(
  'a note that names no process (%j) is an error that says what to do, and the note stays',
  async (text) => {
    const file = path.join(temporaryFolder(), 'server.pid');
    writeFileSync(file, text);
    const remedy = 'find its process (ps -ef), end it (kill), delete the file, and try again.';
    const message = `${file} cannot be read (it says "${text}"): ${remedy}`;
    await expect(stopNoted(file)).rejects.toThrow(message);
    expect(() => findNoted(file)).toThrow(message);
    expect(existsSync(file)).toBe(true);
  },
);

it('a note that cannot be opened is such an error, too', async () => {
  const folder = temporaryFolder();
  await expect(stopNoted(folder)).rejects.toThrow(/^.* cannot be read \(EISDIR.*\): find its process/);
});

it('the note of a program that ended at once names it, and stopping it does nothing', async () => {
  const folder = temporaryFolder();
  const launch = { command: 'true', args: [], cwd: folder, env: programEnvironment() };
  const note = path.join(folder, 'server.pid');
  const ended = await spawnDetached(launch, path.join(folder, 'log'), note);
  await ended.exited;
  expect(findNoted(note)).toBeNull();
  await stopNoted(note);
});
