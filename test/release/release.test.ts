/** What a release says of itself, from CHANGELOG, Chart.yaml and the image. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { describeChart } from '../../charts/release/charts.ts';
import { notesOf } from '../../charts/release/notes.ts';
import { completeBom } from '../../charts/release/sbom.ts';

const root = path.join(import.meta.dirname, '../..');

it('its notes are the part of CHANGELOG about its version, with the date', () => {
  const changelog =
    '# Changelog\n\n## [0.2.0] - 2027-01-31\n\n- New.\n\n## [0.1.0] - unreleased\n\n- First.\n\n[0.1.0]: x\n';
  expect(notesOf(changelog, '0.2.0')).toEqual({ notes: '- New.\n', date: '2027-01-31' });
  expect(notesOf(changelog, '0.1.0')).toEqual({ notes: '- First.\n', date: null });
  expect(() => notesOf(changelog, '0.3.0')).toThrow('says nothing about 0.3.0');
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  expect(notesOf(readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'), version).notes).toContain('#### For SREs');
});

it('is not built for a tag of another version', () => {
  const { status, stderr } = spawnSync(process.execPath, ['charts/release/main.ts', '--tag', 'v9.9.9'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(/the tag v9\.9\.9 is not v\d/);
});

it('its SBOM has npm’s packages, Node, and Debian’s packages of each architecture', () => {
  const bom = JSON.parse(
    execFileSync(
      'npm',
      ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--omit', 'dev', '--omit', 'optional'],
      {
        cwd: root,
        encoding: 'utf8',
        maxBuffer: 2 ** 26,
      },
    ),
  );
  const packages = ['amd64', 'arm64'].map((architecture) => ({
    name: 'libc6',
    version: '2.36-9+deb12u1',
    architecture,
  }));
  const { bomFormat, components } = completeBom(bom, { packages, node: '26.10.0' });
  expect(bomFormat).toBe('CycloneDX');
  const names = components.map(({ purl }) => purl);
  expect(names).toContain('pkg:generic/node@26.10.0');
  expect(names).toContain('pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=arm64&distro=debian-12');
  expect(names.filter((name) => name.startsWith('pkg:npm/koa@'))).toHaveLength(1);
  expect(names.filter((name) => name.startsWith('pkg:npm/vitest@'))).toEqual([]);
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
  for (const name of ['org-api', 'org-api-crds', 'org-api-operator'])
    expect(readFileSync(path.join(root, 'charts', name, 'Chart.yaml'), 'utf8')).not.toMatch(/https?:/);
});
