import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chart, type Manifest, operatorValues, pick, type RenderOptions, render } from '#test/render-charts.ts';
import { getTool } from '../../charts/tools.ts';
import type { Series } from './alerts-data.ts';

/**
 * Found when the file is loaded, because on a new machine it is built first, which takes longer
 * than a test may.
 */
const program = await getTool('promtool');

/** One rule of a PrometheusRule: an alert, or a recorded series. */
export interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels: Record<string, string>;
  annotations?: Record<string, string>;
}

/** Values that switch on all monitoring. */
export const watched = { monitoring: { enabled: true, rules: { runbookBaseUrl: 'https://git.example.com/runbooks' } } };

/** The objects of the operator's chart, with monitoring unless the values switch it off. */
export function renderOperator(values: object = {}): Manifest[] {
  const { monitoring } = watched;
  const from = path.join(chart, '../org-api-operator');
  const options = { from, region: null, release: 'operator', namespace: 'org-api-us' };
  return render({ ...options, values: { monitoring, ...operatorValues, ...values } });
}

/** Returns the rules of a release, as the Prometheus operator passes them on. */
export function renderRules(options: RenderOptions = {}): { groups: { name: string; rules: Rule[] }[] } {
  return pick(render({ ...options, values: { ...watched, ...options.values } }), 'PrometheusRule').spec as Manifest;
}

/** Returns every alert of a release, one for each of its severities. */
export function renderAlerts(options: RenderOptions = {}): (Rule & { alert: string })[] {
  return listAlerts(renderRules(options));
}

/** Returns the alerts among rules. */
export function listAlerts({ groups }: { groups: { rules: Rule[] }[] }): (Rule & { alert: string })[] {
  const rules = groups.flatMap((group) => group.rules);
  return rules.filter((rule): rule is Rule & { alert: string } => rule.alert !== undefined);
}

/**
 * Runs promtool over files that are written for it (JSON is YAML) into one folder. Returns its exit
 * code and output.
 */
export function promtool(
  args: readonly string[],
  files: Record<string, object>,
): { status: number | null; output: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-promtool-'));
  try {
    for (const [name, content] of Object.entries(files))
      writeFileSync(path.join(folder, name), JSON.stringify(content));
    const { status, stdout, stderr } = spawnSync(program, args, {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    return { status, output: `${stdout}${stderr}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One evaluation: all alerts that fire at minute `at` over these series. */
export function evaluation(name: string, series: Series, firing: readonly string[], at = 70): object {
  return buildEvaluation('ALERTS{alertstate="firing"}', name, series, firing, at);
}

/** One evaluation: an alert fires over these series without those of a metric. */
export function withoutMetric(alert: string, metric: string, series: Series, at = 40): object {
  const left = Object.entries(series).filter(([one]) => one.split('{')[0] !== metric);
  const alerts = `ALERTS{alertstate="firing",alertname="${alert}"}`;
  return buildEvaluation(alerts, `${alert} without ${metric}`, Object.fromEntries(left), [alert], at);
}

function buildEvaluation(alerts: string, name: string, series: Series, firing: readonly string[], at: number): object {
  return {
    name,
    interval: '1m',
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    promql_expr_test: [
      {
        expr: `group by (alertname) (${alerts})`,
        eval_time: `${at}m`,
        exp_samples: [...firing].sort().map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
      },
    ],
  };
}

/**
 * Every two minutes by default: half the work of every minute, and no condition of the tests is
 * shorter.
 */
export function evaluateRules(rules: object, tests: object[], everyMinutes = 2) {
  return promtool(['test', 'rules', 'test.json'], {
    'rules.json': rules,
    'test.json': { rule_files: ['rules.json'], evaluation_interval: `${everyMinutes}m`, tests },
  });
}

/** Returns promtool's errors about invalid PromQL; '' when all expressions are valid. */
export function findProblems(expressions: readonly string[]): string {
  const rules = expressions.map((expr, index) => ({ record: `expression:${index}`, expr }));
  const { status, output } = promtool(['check', 'rules', '--lint=none', 'rules.json'], {
    'rules.json': { groups: [{ name: 'all', rules }] },
  });
  return status === 0 ? '' : output;
}

const notMetrics =
  /^(?:sum|max|min|abs|rate|increase|by|on|and|or|unless|absent|time|vector|label_replace|min_over_time|histogram_quantile|deriv|count|group|avg|without|ignoring|topk)$/;

/** Returns the names of metrics in an expression, without recorded series, which have colons. */
export function listMetrics(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '""')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(?:by|on|without|ignoring) *\([^)]*\)/g, '');
  const words = bare.match(/[a-zA-Z_:][a-zA-Z0-9_:]*/g) ?? [];
  return [...new Set(words.filter((word) => !word.includes(':') && !notMetrics.test(word)))];
}
