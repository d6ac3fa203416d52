import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { getTool } from '#test/chart-tools.ts';
import { type Manifest, pick, type RenderOptions, render } from './render.ts';

/** One rule of a PrometheusRule: an alert, or a recorded series. */
export interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels: Record<string, string>;
  annotations?: Record<string, string>;
}

/** Values that switch everything on that watches. */
export const watched = { monitoring: { enabled: true, rules: { runbookBaseUrl: 'https://git.example.com/runbooks' } } };

/** What the rules of a release are, as the Prometheus operator hands them on. */
export function renderRules(options: RenderOptions = {}): { groups: { name: string; rules: Rule[] }[] } {
  return pick(render({ ...options, values: { ...watched, ...options.values } }), 'PrometheusRule').spec as Manifest;
}

/** Every alert of a release, one for each severity it has. */
export function renderAlerts(options: RenderOptions = {}): (Rule & { alert: string })[] {
  const rules = renderRules(options).groups.flatMap((group) => group.rules);
  return rules.filter((rule): rule is Rule & { alert: string } => rule.alert !== undefined);
}

/**
 * Runs promtool over files that are written for it (JSON is YAML) and lie in one folder. Returns
 * its exit code and all it said.
 */
export function promtool(
  args: readonly string[],
  files: Record<string, object>,
): { status: number | null; told: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-promtool-'));
  try {
    for (const [name, content] of Object.entries(files))
      writeFileSync(path.join(folder, name), JSON.stringify(content));
    const { status, stdout, stderr } = spawnSync(getTool('promtool'), args, {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    return { status, told: `${stdout}${stderr}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What promtool says of expressions that are no PromQL; '' when all are. */
export function problemsOf(expressions: readonly string[]): string {
  const rules = expressions.map((expr, index) => ({ record: `expression:${index}`, expr }));
  const { status, told } = promtool(['check', 'rules', '--lint=none', 'rules.json'], {
    'rules.json': { groups: [{ name: 'all', rules }] },
  });
  return status === 0 ? '' : told;
}

const notMetrics =
  /^(?:sum|max|min|abs|rate|increase|by|on|and|or|unless|absent|time|vector|label_replace|min_over_time|histogram_quantile|deriv|count|group|avg|without|ignoring|topk)$/;

/** Names of metrics in an expression; recorded series have colons and are none. */
export function metricsOf(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '""')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(?:by|on|without|ignoring) *\([^)]*\)/g, '');
  const words = bare.match(/[a-zA-Z_:][a-zA-Z0-9_:]*/g) ?? [];
  return [...new Set(words.filter((word) => !word.includes(':') && !notMetrics.test(word)))];
}
