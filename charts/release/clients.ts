/** The packages that partners install: for npm and for Python's index. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../image/buildah.ts';

/** A package of a release, as its SBOM lists it. */
export interface ClientPackage {
  name: string;
  version: string;
  purl: string;
}

/**
 * Packs every client and receiver kit of `apps/clients` into `out`, by what their package managers run too: a `.tgz`
 * by the script `prepack`, a wheel by the build backend. The same sources make the same bytes.
 *
 * @returns the packages.
 */
export function packClients({ repository, out }: { repository: string; out: string }): ClientPackage[] {
  const clients = path.join(repository, 'apps/clients');
  mkdirSync(out, { recursive: true });
  return readdirSync(clients)
    .sort()
    .map((name) => path.join(clients, name))
    .flatMap((folder) => {
      if (existsSync(path.join(folder, 'package.json'))) return packNpm(folder, out);
      return existsSync(path.join(folder, 'pyproject.toml')) ? packPython(folder, out) : [];
    });
}

function packNpm(folder: string, out: string): ClientPackage {
  // The repository's .npmrc forbids scripts of packages, and npm hands that on to what it starts.
  run('npm', ['pack', '--ignore-scripts=false', '--silent', '--pack-destination', out], { cwd: folder });
  const { name, version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as ClientPackage;
  return { name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` };
}

function packPython(folder: string, out: string): ClientPackage {
  const build = 'import sys; from build_wheel import build_wheel; print(build_wheel(sys.argv[1]))';
  const wheel = run('python3', ['-B', '-c', build, out], { cwd: folder });
  const [name = '', version = ''] = wheel.replaceAll('_', '-').split(/-(?=\d)|-py3/);
  return { name, version, purl: `pkg:pypi/${name}@${version}` };
}
