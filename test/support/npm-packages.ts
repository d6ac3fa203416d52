import { createHash } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder, provideFolder } from '../../apps/dev/servers/cache-folder.ts';
import { runTool } from './tools.ts';

/**
 * Returns the `node_modules` of packages with a lock of their own, which are installed once into the user's cache.
 *
 * @param source - the folder of their `package.json` and lock.
 * @throws Error with the remedy when they cannot be installed.
 */
export async function npmPackages({ name, source }: { name: string; source: string }): Promise<string> {
  const lock = readFileSync(path.join(source, 'package-lock.json'));
  const home = cacheFolder(`${name}-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  await provideFolder(home, async (draft) => {
    for (const file of ['package.json', 'package-lock.json']) cpSync(path.join(source, file), path.join(draft, file));
    await runTool(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      what: `${name} could not be installed`,
      remedy: 'check the network and the npm registry',
      cwd: draft,
    });
    return true;
  });
  return path.join(home, 'node_modules');
}
