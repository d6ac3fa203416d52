import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from './buildah.ts';

export interface DebianPackage {
  name: string;
  version: string;
  architecture: string;
}

export interface NpmPackage {
  name: string;
  version: string;
}

/** Unpacks the file system of an image (docker-archive), of any architecture. No layer of it deletes a file. */
export function unpackImage(archive: string, rootfs: string): void {
  const [{ Layers: layers }] = JSON.parse(run('tar', ['-xOf', archive, 'manifest.json'])) as [{ Layers: string[] }];
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-layers-'));
  try {
    for (const layer of layers) {
      execFileSync('tar', ['-xf', archive, '-C', work, layer], { stdio: 'pipe' });
      execFileSync('tar', ['-xf', path.join(work, layer), '-C', rootfs], { stdio: 'pipe' });
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Returns the packages that an image (docker-archive) contains, as scanners read them from its file system. */
export function listContents(archive: string): { npm: NpmPackage[]; debian: DebianPackage[] } {
  const rootfs = mkdtempSync(path.join(tmpdir(), 'org-api-contents-'));
  try {
    unpackImage(archive, rootfs);
    return { npm: listNpmPackages(rootfs), debian: listDebianPackages(rootfs) };
  } finally {
    rmSync(rootfs, { recursive: true, force: true });
  }
}

/** Returns the npm packages of an image's root file system. */
export function listNpmPackages(rootfs: string): NpmPackage[] {
  return globSync('app/**/node_modules/{*,@*/*}/package.json', { cwd: rootfs })
    .map((file) => JSON.parse(readFileSync(path.join(rootfs, file), 'utf8')) as NpmPackage)
    .map(({ name, version }) => ({ name, version }));
}

function listDebianPackages(rootfs: string): DebianPackage[] {
  // distroless images have sums of each package's files beside its record.
  return globSync('var/lib/dpkg/status.d/*', { cwd: rootfs, exclude: ['**/*.md5sums'] }).map((file) => {
    const text = readFileSync(path.join(rootfs, file), 'utf8');
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, 'm').exec(text)?.[1] ?? '';
    return { name: field('Package'), version: field('Version'), architecture: field('Architecture') };
  });
}
