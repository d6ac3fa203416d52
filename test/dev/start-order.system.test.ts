import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { stackPlace } from '#test/stack.ts';
import { getTemporalProgram } from '../../apps/dev/servers/temporal-program.ts';

const patient = { timeout: 60_000, interval: 50 };

it('npm start starts API, console and receiver without waiting for Temporal, the worker after it, and lists the time of each part', async () => {
  const temporal = await holdTemporal();
  const place = await stackPlace({ PATH: temporal.searchPath });
  const { output, ready } = place.launch();
  await vi.waitFor(() => {
    for (const line of ['us: the API answers', 'us: the console is at', 'us: the sample receiver lists'])
      expect(output.text).toContain(line);
  }, patient);
  expect(temporal.isAsked()).toBe(true);
  expect(output.text).not.toContain('Temporal is ready');
  expect(output.text).not.toContain('us: the worker is running');

  temporal.release();
  await ready;
  expect(output.text.indexOf('Temporal is ready')).toBeLessThan(output.text.indexOf('us: the worker is running'));
  const servers = ['PostgreSQL', 'Redis', 'Temporal', 'workflow bundle'];
  const steps = ['us schema', 'us import', 'us keys and webhooks', 'us api', 'us console', 'us receiver', 'us worker'];
  expect(listParts(output.text).toSorted()).toEqual(
    ['the program itself', 'loading of the database code', ...servers, ...steps].toSorted(),
  );
});

it('npm start leaves no process when it is stopped in the middle of a start', async () => {
  const temporal = await holdTemporal();
  const place = await stackPlace({ PATH: temporal.searchPath });
  const { stop } = place.launch();
  await vi.waitFor(() => expect(temporal.isAsked()).toBe(true), patient);
  expect(listProcesses(place.env.ORG_API_STATE)).not.toEqual([]);
  expect(await stop('SIGINT')).toBe(0);
  expect(listProcesses(place.env.ORG_API_STATE)).toEqual([]);
});

/** A search path with a `temporal` that starts the real program's server after `release`. */
async function holdTemporal() {
  const program = await getTemporalProgram(() => {});
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-temporal-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string) => path.join(folder, name);
  const script = `#!/bin/sh
if [ "$1" = server ]; then
  touch '${at('asked')}'
  until [ -e '${at('released')}' ]; do sleep 0.1; done
fi
exec '${program}' "$@"
`;
  writeFileSync(at('temporal'), script);
  chmodSync(at('temporal'), 0o755);
  return {
    searchPath: `${folder}${path.delimiter}${process.env.PATH ?? ''}`,
    isAsked: () => existsSync(at('asked')),
    release: () => writeFileSync(at('released'), ''),
  };
}

/** The names in the list of parts, each of which has two times before it. */
function listParts(output: string): string[] {
  return [...output.matchAll(/^ +\d+\.\d s +\d+\.\d s {2}(.+)$/gm)].map(([, name = '']) => name);
}

/** The command lines of all processes that name a folder. */
function listProcesses(folder: string): string[] {
  return readCommandLines().filter((line) => line.includes(folder));
}

function readCommandLines(): string[] {
  if (process.platform !== 'linux') return execFileSync('ps', ['-ww', '-eo', 'args'], { encoding: 'utf8' }).split('\n');
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      return ''; // it ended meanwhile
    }
  });
}
