import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import type { Build } from '../image/build-id.ts';
import { run } from '../image/buildah.ts';

interface ChartFile {
  name: string;
  type: string;
  home?: string;
  sources?: string[];
  icon?: string;
  annotations?: Record<string, string>;
}

/**
 * Packs every chart that can be installed, as `helm push` takes it, with what only a release knows:
 * where the repository is, and with it the icon, and what Artifact Hub shows. Without a remote these
 * are left out.
 */
export async function packageCharts(options: {
  repository: string;
  out: string;
  version: string;
  build: Build;
}): Promise<void> {
  const { repository, out, version, build } = options;
  const { getTool } = await import('../tools.ts');
  const helm = await getTool('helm');
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-charts-'));
  try {
    cpSync(path.join(repository, 'charts'), work, { recursive: true });
    for (const name of readdirSync(work)) {
      const file = path.join(work, name, 'Chart.yaml');
      if (!existsSync(file)) continue;
      const chart = parse(readFileSync(file, 'utf8')) as ChartFile;
      if (chart.type === 'library') continue;
      writeFileSync(file, stringify(describeChart(chart, { version, source: build.source })));
      run(helm, ['package', '--dependency-update', '--destination', out, path.join(work, name)]);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Returns a chart's description as it is published. */
export function describeChart(chart: ChartFile, release: { version: string; source: string | null }): ChartFile {
  const { version } = release;
  const annotations = {
    ...chart.annotations,
    'artifacthub.io/license': 'Apache-2.0',
    'artifacthub.io/prerelease': String(version.startsWith('0.')),
    'artifacthub.io/operator': String(chart.name === 'org-api-operator'),
  };
  const home = release.source?.replace(/\.git$/, '') ?? null;
  if (home === null || !home.startsWith('https://')) return { ...chart, annotations };
  const at = (name: string) => `${home}/blob/v${version}/${name}`;
  return {
    ...chart,
    home,
    sources: [home],
    icon: `${home}/raw/v${version}/apps/console/assets/icon.svg`,
    annotations: {
      ...annotations,
      'artifacthub.io/links': stringify([
        { name: 'Operations guide', url: at('charts/README.md') },
        { name: 'Changelog', url: at('CHANGELOG.md') },
        { name: 'Security', url: at('SECURITY.md') },
      ]),
    },
  };
}
