import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';

/** With an empty cache of Go, three minutes on a busy machine of two cores; 3 s afterwards. */
const buildMs = 600_000;

/**
 * Builds the Go program in a folder of test/charts for the tests of a file. Returns a function that
 * runs it over lines of JSON and returns its output.
 */
export function useGoProgram(name: string): (input: readonly object[]) => string {
  const folder = mkdtempSync(path.join(tmpdir(), `org-api-${name}-`));
  const program = path.join(folder, name);
  beforeAll(() => {
    const { status, stderr, error } = spawnSync('go', ['build', '-buildvcs=false', '-o', program, '.'], {
      cwd: path.join(import.meta.dirname, name),
      env: { ...process.env, CGO_ENABLED: '0' },
      encoding: 'utf8',
    });
    if (status !== 0)
      throw new Error(`${name} could not be built: install Go 1.26 or newer. ${error?.message ?? stderr}`);
  }, buildMs);
  afterAll(() => rmSync(folder, { recursive: true }));
  return (input) => {
    const lines = input.map((one) => JSON.stringify(one)).join('\n');
    const { stdout, stderr } = spawnSync(program, { input: lines, encoding: 'utf8', maxBuffer: 512 * 1024 * 1024 });
    if (stderr !== '') throw new Error(stderr);
    return stdout;
  };
}
