import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import type { Build } from '../image/build-id.ts';
import { run } from '../image/buildah.ts';

interface ChartFile {
  name: string;
  type: string;
  version?: string;
  appVersion?: string;
  home?: string;
  sources?: string[];
  icon?: string;
  annotations?: Record<string, string>;
}

/**
 * Packs every chart that can be installed, as `helm push` takes it, with what only a release knows:
 * its version, where the repository is, and with it the icon, what Artifact Hub shows, and the
 * addresses of pages that the package does not contain. Without a remote these are left out.
 */
export function packageCharts(options: {
  repository: string;
  out: string;
  version: string;
  build: Build;
  /** Helm's path. */
  helm: string;
}): void {
  const { repository, out, version, build, helm } = options;
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-charts-'));
  try {
    cpSync(path.join(repository, 'charts'), work, { recursive: true });
    for (const name of readdirSync(work)) {
      const file = path.join(work, name, 'Chart.yaml');
      if (!existsSync(file)) continue;
      const chart = parse(readFileSync(file, 'utf8')) as ChartFile;
      if (chart.type === 'library') continue;
      writeFileSync(file, stringify(describeChart(chart, { version, source: build.source })));
      for (const page of readdirSync(path.join(work, name), { recursive: true, encoding: 'utf8' })) {
        if (!page.endsWith('.md')) continue;
        const markdown = readFileSync(path.join(work, name, page), 'utf8');
        const place = { chart: name, page, pagesUrl: findPagesUrl(version, build.source) };
        writeFileSync(path.join(work, name, page), rewriteLinks(markdown, place));
      }
      run(helm, ['package', '--dependency-update', '--destination', out, path.join(work, name)]);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Returns a chart's description as it is published. */
export function describeChart(given: ChartFile, release: { version: string; source: string | null }): ChartFile {
  const { version } = release;
  const chart = { ...given, version, appVersion: version };
  const annotations = {
    ...chart.annotations,
    'artifacthub.io/license': 'Apache-2.0',
    'artifacthub.io/prerelease': String(/^0\.|-/.test(version)),
    'artifacthub.io/operator': String(chart.name === 'org-api-operator'),
  };
  const home = findHome(release.source);
  if (home === null) return { ...chart, annotations };
  const at = (name: string) => `${findPagesUrl(version, release.source)}/${name}`;
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

/** Returns the https URL of the repository; null without a remote of that form. */
function findHome(source: string | null): string | null {
  return source?.startsWith('https://') ? source.replace(/\.git$/, '') : null;
}

/** Returns the URL below which the repository's files of a version are; null without a repository. */
function findPagesUrl(version: string, source: string | null): string | null {
  const home = findHome(source);
  return home === null ? null : `${home}/blob/v${version}`;
}

/**
 * Returns a page of a chart with the links that lead out of the package, or to the examples that it
 * lacks (`ci/`), as URLs of the repository; without a repository, as text.
 *
 * @param place - the chart's folder below `charts`, and the page's path in it.
 */
export function rewriteLinks(
  markdown: string,
  { chart, page, pagesUrl }: { chart: string; page: string; pagesUrl: string | null },
): string {
  const folder = path.posix.join('charts', chart);
  return markdown.replace(/\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)/g, (link, text: string, target: string) => {
    const file = path.posix.join(folder, path.posix.dirname(page), target);
    if (file.startsWith(`${folder}/`) && !file.startsWith(`${folder}/ci/`)) return link;
    return pagesUrl === null ? text : `[${text}](${pagesUrl}/${file})`;
  });
}
