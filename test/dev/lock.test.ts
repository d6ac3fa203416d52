/** Locks between processes: one owner, also when the last one was killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { endChild } from '#test/end-child.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { acquireLock } from '../../apps/dev/state-lock.mjs';

const lockModule = JSON.stringify(path.join(import.meta.dirname, '../../apps/dev/state-lock.mjs'));

function setup() {
  const folder = temporaryFolder();
  return { folder, file: path.join(folder, 'lock') };
}

/** Runs a program that has the lock's functions, its `file` and a `folder`. */
function runChild(program: string, { folder, file }: ReturnType<typeof setup>): ChildProcess {
  const source = `import { appendFileSync, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { acquireLock, provideOnce } from ${lockModule};
const [folder, file] = ${JSON.stringify([folder, file])};
${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    env: childEnvironment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => endChild(child).then(() => {}));
  return child;
}

const waitForExitCode = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

it('of processes that find the lock of a killed one at the same time, one acquires it', async () => {
  const place = setup();
  // Each round ends as a kill would end it: the lock stays and its owner is gone.
  const program = `for (let round = 0; round < 60; ) {
    if (acquireLock(file).unlock === undefined) continue;
    mkdirSync(folder + '/inside'); // fails when another is inside
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    rmdirSync(folder + '/inside');
    round += 1;
    writeFileSync(file, '1 0');
  }`;
  const children = Array.from({ length: 4 }, () => runChild(program, place));
  expect(await Promise.all(children.map(waitForExitCode))).toEqual([0, 0, 0, 0]);
  expect(readdirSync(place.folder)).toEqual(['lock']);
});

it('of processes that need the same thing, one provides it, and the others wait and find it', async () => {
  const place = setup();
  const program = `const isThere = () => existsSync(folder + '/provided');
  const provide = () => new Promise((resolve) => {
    appendFileSync(folder + '/begun', 'x');
    setTimeout(() => resolve(writeFileSync(folder + '/provided', '') === undefined), 300);
  });
  process.exit(await provideOnce(file, { isThere, provide }) && isThere() ? 0 : 1);`;
  const children = Array.from({ length: 4 }, () => runChild(program, place));
  expect(await Promise.all(children.map(waitForExitCode))).toEqual([0, 0, 0, 0]);
  expect(readFileSync(path.join(place.folder, 'begun'), 'utf8')).toBe('x');
  expect(readdirSync(place.folder).toSorted()).toEqual(['begun', 'provided']);
});

it('a lock names the process that holds it, until that process ends in any way', async () => {
  const place = setup();
  const child = runChild(`acquireLock(file); console.log('held'); setInterval(() => {}, 1e6);`, place);
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  expect(acquireLock(place.file)).toEqual({ holder: child.pid });
  await endChild(child);
  expect(acquireLock(place.file)).toEqual({ unlock: expect.any(Function) });
});

it('a lock whose pid another process has now is free', () => {
  const { file } = setup();
  writeFileSync(file, `${process.pid} 0`);
  expect(acquireLock(file).unlock).toBeDefined();
  expect(acquireLock(file).holder).toBe(process.pid);
});

it('an unlock removes no lock of another process', () => {
  const { folder, file } = setup();
  const { unlock } = acquireLock(file);
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  writeFileSync(file, '1 another');
  unlock?.();
  expect(readFileSync(file, 'utf8')).toBe('1 another');
  expect(existsSync(file)).toBe(true);
});
