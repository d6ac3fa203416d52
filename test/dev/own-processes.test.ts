/** What `npm start` takes for ready is a process that it has started itself. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { getDirectly } from '#runtime/get-directly.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startApp } from '../../apps/dev/app-process.ts';
import { choosePort, getFreePort } from '../../apps/dev/servers/ports.ts';
import { findNoted, spawnDetached, stopNoted } from '../../apps/dev/servers/process.ts';
import { programEnvironment } from '../../apps/dev/servers/program-environment.ts';
import { startServer, stopLeftOver } from '../../apps/dev/servers/server-program.ts';
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

it('of two stacks that choose the same free port at the same moment one gets another', async () => {
  const port = await getFreePort();
  const choose = path.join(import.meta.dirname, '../../apps/dev/servers/ports.ts');
  // Each stays until both have chosen, and listens on nothing yet.
  const program = `import { choosePort } from ${JSON.stringify(choose)};
    console.log(await choosePort(${port}, 'us API', () => {}));
    process.stdin.resume().on('end', () => process.exit());`;
  const chosen = await Promise.all(
    [0, 1].map(async () => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
      onTestFinished(() => void child.kill());
      const [line] = await once(createInterface({ input: child.stdout }), 'line');
      return { child, port: Number(line) };
    }),
  );
  expect(chosen.filter((one) => one.port === port)).toHaveLength(1);
  for (const { child } of chosen) child.stdin.end();
  await Promise.all(chosen.map(({ child }) => child.exitCode ?? once(child, 'exit')));
  expect(await choosePort(port, 'us API', () => {})).toBe(port);
});

it('a server moves to another port when its own is taken between choice and start', async () => {
  const preferred = await getFreePort();
  const folder = temporaryFolder();
  const other = createServer();
  onTestFinished(() => void other.close());
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  const program = `require('http').createServer((_, response) => response.end(String(process.pid)))
    .listen(Number(process.argv[1]), '127.0.0.1')`;
  const server = await startServer({
    name: 'Server',
    folder,
    readyMs: 60_000,
    report,
    async prepare() {
      const port = await choosePort(preferred, 'Server', report);
      if (port === preferred) await once(other.listen(port, '127.0.0.1'), 'listening');
      const launch = { command: process.execPath, args: ['-e', program, String(port)], cwd: folder, env: {} };
      return { server: { port }, launch, ports: [port] };
    },
    async check({ port }, { pid }) {
      if ((await getDirectly(`http://127.0.0.1:${port}/`, 2_000)).text !== String(pid)) throw new Error('another one');
    },
  });
  onTestFinished(() => server.stop());
  expect(server.port).not.toBe(preferred);
  expect(lines).toEqual([
    'Server: another program took its port meanwhile; trying another one',
    expect.stringContaining(`Server: port ${preferred} is taken by another program, using ${server.port} instead`),
    expect.stringContaining(`Server is ready on 127.0.0.1:${server.port}`),
  ]);
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
