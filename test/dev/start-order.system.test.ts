import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { setupDevStack } from '#test/stack.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { getTemporalProgram, temporalVersion } from '../../apps/dev/servers/temporal-program.ts';
import { acquireLock } from '../../apps/dev/state-lock.mjs';

/** The order is judged, and not how long a busy machine takes. */
const timeout = 600_000;
const patient = { timeout: 240_000, interval: 50 };

it('npm start starts each app as soon as what it needs is there, and says when each part was ready', {
  timeout,
}, async () => {
  const temporal = await holdTemporal();
  const dev = await setupDevStack(temporal.environment);
  const { output, ready } = dev.launch();
  await vi.waitFor(() => {
    expect(output.text).toContain('us api is ready');
    expect(output.text).toContain('us receiver is ready');
  }, patient);
  expect(output.text).not.toContain('us console is ready');

  temporal.install();
  await vi.waitFor(() => expect(temporal.isRequested()).toBe(true), patient);
  temporal.resume();
  await ready;
  for (const line of ['us console is ready', 'us worker is ready'])
    expect(output.text.indexOf('Temporal is ready')).toBeLessThan(output.text.indexOf(line));
  const parts = ['PostgreSQL', 'Redis', 'Temporal', 'us receiver', 'us worker', 'us api', 'us console'];
  for (const part of parts)
    expect(output.text).toMatch(new RegExp(`^ +\\d+\\.\\d s {2}${part}.* is ready on .*\\(\\d+\\.\\d s\\)$`, 'm'));
});

it('npm start leaves no process when it is stopped in the middle of a start', { timeout }, async () => {
  const temporal = await holdTemporal();
  const dev = await setupDevStack(temporal.environment);
  const { stop } = dev.launch();
  temporal.install();
  await vi.waitFor(() => expect(temporal.isRequested()).toBe(true), patient);
  expect(listProcesses(dev.env.ORG_API_STATE)).not.toEqual([]);
  expect(await stop('SIGINT')).toBe(0);
  expect(listProcesses(dev.env.ORG_API_STATE)).toEqual([]);
});

/**
 * A cache without Temporal's program, which `install` adds as another process would. Its server
 * starts after `resume`.
 */
async function holdTemporal() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const onPath = folders.map((folder) => path.join(folder, 'temporal')).find((file) => existsSync(file));
  const program = onPath ?? (await getTemporalProgram(() => {}));
  const cache = temporaryFolder();
  const at = (name: string) => path.join(cache, name);
  const target = at(`org-api/temporal-${temporalVersion}/temporal`);
  const { unlock: endInstallation } = acquireLock(`${path.dirname(target)}.lock`);
  const script = `#!/bin/sh
if [ "$1" = server ]; then
  touch '${at('asked')}'
  until [ -e '${at('resumed')}' ]; do sleep 0.1; done
fi
exec '${program}' "$@"
`;
  return {
    environment: {
      XDG_CACHE_HOME: cache,
      PATH: folders.filter((folder) => !existsSync(path.join(folder, 'temporal'))).join(path.delimiter),
    },
    install() {
      mkdirSync(path.dirname(target), { recursive: true });
      writeFileSync(target, script, { mode: 0o755 });
      endInstallation?.();
    },
    isRequested: () => existsSync(at('asked')),
    resume: () => writeFileSync(at('resumed'), ''),
  };
}

/** Returns the command lines of all processes that name a folder. */
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
