import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder, provideFolder } from '../../apps/dev/servers/cache-folder.ts';

/**
 * Returns the folder in which `npm ci --omit=dev` has installed the packages of this
 * package-lock.json. It is in the cache and created once per lock (12 s), and never the developer's
 * node_modules, which may have been changed by hand.
 */
export async function getModules(repository: string, report: (line: string) => void): Promise<string> {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const name of ['package-lock.json', '.npmrc']) hash.update(readFileSync(path.join(repository, name)));
  const folder = cacheFolder(`image-modules-${hash.digest('hex').slice(0, 16)}`);
  await provideFolder(folder, (draft) => install(repository, draft, report));
  return folder;
}

function install(repository: string, folder: string, report: (line: string) => void): boolean {
  report('installing the dependencies for the image (once a lock)');
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(path.join(repository, name), path.join(folder, name));
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  try {
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] });
    return true;
  } catch {
    throw new Error(
      'npm ci failed, as it says above: fix that, or run npm install when the lock is behind package.json.',
    );
  }
}
