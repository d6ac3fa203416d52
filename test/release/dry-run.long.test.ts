/** Everything that a release publishes, made on this machine. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import type { Bom } from '../../charts/release/sbom.ts';

const root = path.join(import.meta.dirname, '../..');

interface Manifest {
  manifests: { digest: string; platform?: { architecture: string } }[];
}

it('a dry run makes image, charts, clients, SBOM, notes and checksums, and the checksums are right', {
  timeout: 900_000,
}, () => {
  const out = temporaryFolder();
  const unpacked = temporaryFolder();
  execFileSync(process.execPath, ['charts/release/main.ts', '--dry-run', '--out', out], { cwd: root, stdio: 'pipe' });
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  expect(readdirSync(out).sort()).toEqual(
    [
      'NOTES.md',
      'SHA256SUMS',
      ...['org-api', 'org-api-crds', 'org-api-operator'].map((name) => `${name}-${version}.tgz`),
      'import-1.schema.json',
      'org-api-client-1.0.0.tgz',
      'org-api-receiver-1.0.0.tgz',
      ...['org_api', 'org_api_receiver'].map((name) => `${name}-1.0.0-py3-none-any.whl`),
      'org-api-image.oci.tar',
      'org-api.cdx.json',
      'postman-collection.json',
    ].sort(),
  );
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out, stdio: 'pipe' });
  const archive = path.join(out, 'org-api-image.oci.tar');
  const entry = <T>(name: string): T => JSON.parse(execFileSync('tar', ['-xOf', archive, name], { encoding: 'utf8' }));
  const blob = (digest: string) => `./blobs/${digest.replace(':', '/')}`;
  const [index] = entry<Manifest>('./index.json').manifests;
  const images = entry<Manifest>(blob(index?.digest ?? '')).manifests;
  expect(images.map(({ platform }) => platform?.architecture)).toEqual([process.arch.replace('x64', 'amd64')]);
  for (const chart of ['org-api', 'org-api-crds', 'org-api-operator']) {
    execFileSync('tar', ['-xzf', path.join(out, `${chart}-${version}.tgz`), '-C', unpacked]);
    const pages = globSync('**/*.md', { cwd: path.join(unpacked, chart) });
    expect(pages).toContain('README.md');
    for (const page of pages) {
      const file = path.join(unpacked, chart, page);
      for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g))
        expect(existsSync(path.join(path.dirname(file), target)), `${chart}/${page}: ${target}`).toBe(true);
    }
  }
  const bom = JSON.parse(readFileSync(path.join(out, 'org-api.cdx.json'), 'utf8')) as Bom;
  const own = ['pkg:npm/%40org-api/client@1.0.0', 'pkg:npm/%40org-api/receiver@1.0.0'];
  const purls = bom.components.map(({ purl }) => purl);
  expect(purls).toEqual(expect.arrayContaining([...own, 'pkg:pypi/org-api@1.0.0', 'pkg:pypi/org-api-receiver@1.0.0']));
  const listed = bom.components
    .filter(({ purl }) => purl.startsWith('pkg:npm/') && !own.includes(purl))
    .map(({ name }) => name);
  for (const { digest } of images) {
    const { layers } = entry<{ layers: { digest: string }[] }>(blob(digest));
    const names = layers.flatMap((layer) => {
      const packed = execFileSync('tar', ['-xOf', archive, blob(layer.digest)], { maxBuffer: 2 ** 30 });
      const files = execFileSync('tar', ['-tzf', '-'], { input: packed, encoding: 'utf8', maxBuffer: 2 ** 28 });
      const found = files.matchAll(/\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\/package\.json$/gm);
      return [...found].map(([, name = '']) => name);
    });
    expect(new Set(listed)).toEqual(new Set(names));
  }
});
