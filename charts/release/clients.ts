/** The packages that partners install: for npm and for Python's index. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from '../image/buildah.ts';

/** A package of a release, as its SBOM lists it. */
export interface ClientPackage {
  name: string;
  version: string;
  purl: string;
}

/**
 * Packs every client and receiver kit of `apps/clients` into `out`: a `.tgz` of npm, or a wheel and an
 * sdist. The same sources make the same bytes.
 *
 * @returns the packages.
 */
export function packClients({ repository, out }: { repository: string; out: string }): ClientPackage[] {
  const clients = path.join(repository, 'apps/clients');
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-clients-'));
  const isPackage = (name: string, file: string) => readdirSync(path.join(clients, name)).includes(file);
  const folders = readdirSync(clients, { withFileTypes: true }).filter((one) => one.isDirectory());
  const names = folders.map(({ name }) => name).sort();
  mkdirSync(out, { recursive: true });
  const copy = (name: string, ...files: string[]): string => {
    const draft = path.join(work, name);
    for (const file of ['README.md', ...files])
      cpSync(path.join(clients, name, file), path.join(draft, file), {
        recursive: true,
        filter: (one) => !one.includes('__pycache__'),
      });
    cpSync(path.join(repository, 'LICENSE'), path.join(draft, 'LICENSE'));
    return draft;
  };
  try {
    const npm = names
      .filter((name) => isPackage(name, 'package.json'))
      .map((name) => packNpm(repository, path.join(clients, name), copy(name, 'package.json'), out));
    const python = names
      .filter((name) => isPackage(name, 'pyproject.toml'))
      .map((name) => {
        const [source = ''] = readdirSync(path.join(clients, name)).filter((one) => one.startsWith('org_api'));
        return packPython(copy(name, 'pyproject.toml', source), out);
      });
    return [...npm, ...python];
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function packNpm(repository: string, source: string, draft: string, out: string): ClientPackage {
  const compiler = path.join(repository, 'node_modules/.bin/tsc');
  run(compiler, ['-p', source, '--outDir', path.join(draft, 'dist')], { cwd: repository });
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', out], { cwd: draft });
  const { name, version } = JSON.parse(readFileSync(path.join(draft, 'package.json'), 'utf8')) as ClientPackage;
  return { name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` };
}

function packPython(draft: string, out: string): ClientPackage {
  const stem = run('python3', ['-B', path.join(import.meta.dirname, 'wheel.py'), draft, out], { cwd: draft }).trim();
  const [name = '', version = ''] = stem.replaceAll('_', '-').split(/-(?=\d)/);
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX'];
  const order = ['--sort=name', '--mtime=@315532800', `--transform=s,^[.],${stem},`];
  const archive = path.join(out, `${stem}.tar`);
  run('tar', ['-cf', archive, ...owner, ...order, '-C', draft, '.'], { cwd: draft });
  run('gzip', ['--no-name', '--force', '--best', archive], { cwd: draft });
  return { name, version, purl: `pkg:pypi/${name}@${version}` };
}
