/** How a program that was built with others becomes the one that every test finds. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { acquireLock } from '../../apps/dev/state-lock.mjs';
import { provideTool, tools } from '../../charts/tools.ts';

it('a program that is there is provided without waiting for a process that builds it, and once', () => {
  const cache = temporaryFolder();
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('XDG_CACHE_HOME', cache);
  const folder = path.join(cache, 'org-api/chart-tools', `helm-${tools.helm.version}`);
  expect(acquireLock(`${folder}.lock`)).toHaveProperty('unlock'); // as the process that builds it
  const provide = (content: string) => {
    const program = path.join(cache, 'built');
    writeFileSync(program, content);
    provideTool('helm', program);
    return readFileSync(path.join(folder, 'helm'), 'utf8');
  };
  expect(provide('first')).toBe('first');
  expect(provide('second')).toBe('first');
});
