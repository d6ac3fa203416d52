import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

/**
 * Returns the folder in which `npm ci --omit=dev` has installed the packages of this
 * package-lock.json. It is in `cache` and created once per lock (12 s), and never the developer's
 * node_modules, which may have been changed by hand. Two concurrent builds create it twice, and the
 * first one's stays.
 */
export function getModules(repository: string, cache: string, report: (line: string) => void): string {
  const inputs = ['package.json', 'package-lock.json', '.npmrc'];
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const name of ['package-lock.json', '.npmrc']) hash.update(readFileSync(path.join(repository, name)));
  const folder = path.join(cache, `image-modules-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  report('installing the dependencies for the image (once a lock)');
  const making = `${folder}.${process.pid}`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { recursive: true });
  for (const name of inputs) copyFileSync(path.join(repository, name), path.join(making, name));
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  try {
    execFileSync('npm', args, { cwd: making, stdio: ['ignore', 2, 2] });
  } catch {
    rmSync(making, { recursive: true, force: true });
    throw new Error(
      'npm ci failed, as it says above: fix that, or run npm install when the lock is behind package.json.',
    );
  }
  if (existsSync(folder)) rmSync(making, { recursive: true, force: true });
  else renameSync(making, folder);
  return folder;
}
