import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, statSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder, provideFolder } from '../../apps/dev/servers/cache-folder.ts';
import type { Report } from '../../apps/dev/servers/process.ts';
import { buildFrom, run } from './buildah.ts';

const file = path.join(import.meta.dirname, 'bases.Dockerfile');
/** Beside what every Debian has: certificates, and the libraries of Node and of Temporal's native module. */
const debianPackages = ['ca-certificates', 'libatomic1', 'libstdc++6'];

/**
 * Makes the Dockerfile's bases in buildah's store, unless they are there, and returns their names by the arguments that
 * name them. Debian is made once for a user, in the cache; when that folder is deleted, bases are made again.
 */
export async function makeBases(report: Report): Promise<{ BUILD_IMAGE: string; RUNTIME_IMAGE: string }> {
  const context = cacheFolder(`image-bases-node-${process.versions.node}`);
  await provideFolder(context, (draft) => fillContext(draft, report));
  const { mtimeMs } = statSync(path.join(context, 'debian.tar'));
  const hash = createHash('sha256').update(`${mtimeMs}`).update(readFileSync(file)).digest('hex').slice(0, 12);
  const makeBase = (target: string) => {
    const tag = `localhost/org-api-base:${target}-${hash}`;
    if (run('buildah', ['images', '--quiet', '--filter', `reference=${tag}`]) === '')
      buildFrom(file, { context, options: ['--target', target, '--tag', tag] });
    return tag;
  };
  return { BUILD_IMAGE: makeBase('build'), RUNTIME_IMAGE: makeBase('runtime') };
}

function fillContext(folder: string, report: Report): boolean {
  report('making the bases of Debian’s packages (once)');
  const include = `--include=${debianPackages.join(',')}`;
  run('mmdebstrap', ['--variant=minbase', include, 'bookworm', path.join(folder, 'debian.tar')]);
  copyFileSync(process.execPath, path.join(folder, 'node'));
  const packed = run('npm', ['pack', '--silent', `npm@${run('npm', ['--version']).trim()}`], { cwd: folder }).trim();
  renameSync(path.join(folder, packed), path.join(folder, 'npm.tgz'));
  return true;
}
