/** What a release says of itself, from CHANGELOG, Chart.yaml and the image. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { listNpmPackages } from '../../charts/image/contents.ts';
import { describeChart, rewriteLinks } from '../../charts/release/charts.ts';
import { getNotes, getTaggedVersion } from '../../charts/release/notes.ts';
import { describeContents } from '../../charts/release/sbom.ts';

const root = path.join(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const packageFile = (folder: string, name: string) => path.join(folder, name, 'package.json');

it('its notes are the part of CHANGELOG about its version, with the date', () => {
  const changelog =
    '# Changelog\n\n## [0.2.0] - 2027-01-31\n\n- New.\n\n## [0.1.0] - unreleased\n\n- First.\n\n[0.1.0]: x\n';
  expect(getNotes(changelog, '0.2.0')).toEqual({ notes: '- New.\n', date: '2027-01-31' });
  expect(getNotes(changelog, '0.1.0')).toEqual({ notes: '- First.\n', date: null });
  expect(() => getNotes(changelog, '0.3.0')).toThrow('says nothing about 0.3.0');
  expect(getNotes(readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'), version).notes).toContain('#### For SREs');
});

it('a tag is the version of package.json, or a candidate for it', () => {
  expect(getTaggedVersion('v0.1.0', '0.1.0')).toBe('0.1.0');
  expect(getTaggedVersion('v0.1.0-rc.12', '0.1.0')).toBe('0.1.0-rc.12');
  for (const tag of [undefined, '0.1.0', 'v0.1.1', 'v0.1.0-rc', 'v0.1.0-rc.0', 'v0.1.0-beta.1', 'v0.1.1-rc.1'])
    expect(() => getTaggedVersion(tag, '0.1.0'), tag).toThrow('is not v0.1.0 or v0.1.0-rc.N');
});

it('is not built for a tag of another version', () => {
  const { status, stderr } = spawnSync(process.execPath, ['charts/release/main.ts', '--tag', 'v9.9.9'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(/the tag v9\.9\.9 is not v\d/);
});

it('its SBOM has each npm package of the image and no other one, Node, and Debian’s packages of each architecture', () => {
  const rootfs = temporaryFolder();
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: true; optional?: true; devOptional?: true }>;
  };
  // As npm ci installs them without packages for development and optional ones.
  const included = Object.keys(packages).filter((folder) => {
    const { dev, optional, devOptional } = packages[folder] ?? {};
    return folder !== '' && !dev && !optional && !devOptional;
  });
  for (const folder of included) cpSync(packageFile(root, folder), packageFile(path.join(rootfs, 'app'), folder));
  const sbom = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
  const lock = JSON.parse(execFileSync('npm', sbom, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 }));
  const debian = ['amd64', 'arm64'].map((architecture) => ({ name: 'libc6', version: '2.36-9+deb12u1', architecture }));

  const bom = describeContents(lock, { npm: listNpmPackages(rootfs), debian, node: '26.10.0' });

  expect(bom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'org-api', version } } });
  const names = bom.components.map(({ purl }) => purl);
  expect(names).toContain('pkg:generic/node@26.10.0');
  expect(names).toContain('pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=arm64&distro=debian-12');
  const npm = bom.components.filter(({ purl }) => purl.startsWith('pkg:npm/')).map((one) => one['bom-ref']);
  const installed = included.map((folder) => `${folder.split('node_modules/').at(-1)}@${packages[folder]?.version}`);
  expect(npm).toEqual([...new Set(installed)].sort());
  for (const name of ['zod', 'pino', '@opentelemetry/api', 'standardwebhooks'])
    expect(npm.filter((ref) => ref.startsWith(`${name}@`))).toHaveLength(1);
  const refs = bom.dependencies.flatMap(({ ref, dependsOn = [] }) => [ref, ...dependsOn]);
  expect(new Set(refs)).toEqual(new Set([bom.metadata.component['bom-ref'], ...npm]));
  const other = { name: 'unlisted', version: '1.0.0' };
  expect(() => describeContents(lock, { npm: [other], debian, node: '26.10.0' })).toThrow('has unlisted@1.0.0, which');
});

it('its charts say where the repository is, with an icon, and no other chart names an address', () => {
  const chart = { name: 'org-api', type: 'application' };
  const source = 'https://github.com/owner/org-api.git';
  expect(describeChart(chart, { version: '0.1.0', source })).toMatchObject({
    home: 'https://github.com/owner/org-api',
    icon: 'https://github.com/owner/org-api/raw/v0.1.0/apps/console/assets/icon.svg',
    annotations: { 'artifacthub.io/license': 'Apache-2.0', 'artifacthub.io/prerelease': 'true' },
  });
  expect(describeChart(chart, { version: '0.1.0', source: null })).not.toHaveProperty('home');
  expect(describeChart(chart, { version: '0.2.0-rc.1', source })).toMatchObject({
    version: '0.2.0-rc.1',
    appVersion: '0.2.0-rc.1',
    icon: 'https://github.com/owner/org-api/raw/v0.2.0-rc.1/apps/console/assets/icon.svg',
  });
  for (const name of ['org-api', 'org-api-crds', 'org-api-operator'])
    expect(readFileSync(path.join(root, 'charts', name, 'Chart.yaml'), 'utf8')).not.toMatch(/https?:/);
});

it('a packed page links what the package contains, and the repository’s file of that version for the rest', () => {
  const page =
    'See [a](../../docs/a.md#b), [guide](../README.md), [r](runbooks/r.md), [v](ci/v.yaml), [x](https://x.y), [s](#s).';
  const place = { chart: 'org-api', page: 'README.md', pagesUrl: 'https://h/blob/v1' };
  expect(rewriteLinks(page, place)).toBe(
    'See [a](https://h/blob/v1/docs/a.md#b), [guide](https://h/blob/v1/charts/README.md), [r](runbooks/r.md), ' +
      '[v](https://h/blob/v1/charts/org-api/ci/v.yaml), [x](https://x.y), [s](#s).',
  );
  const inFolder = '[up](../README.md), [guide](../../README.md)';
  expect(rewriteLinks(inFolder, { ...place, page: 'runbooks/r.md', pagesUrl: null })).toBe('[up](../README.md), guide');
});
