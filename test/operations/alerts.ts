import { expect } from 'vitest';
import { pick } from '#test/render-charts.ts';
import { healthy, type Series } from '../charts/alerts-data.ts';
import { evaluateRules, evaluation, listAlerts, listMetrics, renderOperator, renderRules } from '../charts/promtool.ts';

/** A process whose metrics Prometheus reads, with the labels that it adds. */
export interface Target {
  labels: string;
  metricsUrl: string;
}

const always = (value: string) => `${value}x480`;

/**
 * Expects that no alert of the release fires while these processes stay as they are now. What no
 * process of the test shows is as in a healthy release. Times are, too: promtool's clock begins at 0.
 */
export const expectQuietAlerts = (targets: readonly Target[]): Promise<void> =>
  expectQuiet(renderRules(), targets, healthy);

/** Expects the same of the alerts of the operator's chart, for a process of the operator. */
export function expectQuietOperator(metricsUrl: string): Promise<void> {
  const labels = 'installation="org-api-us/operator",region="us",component="operator",pod="operator-1"';
  return expectQuiet(pick(renderOperator(), 'PrometheusRule').spec, [{ labels, metricsUrl }], {});
}

async function expectQuiet(
  rules: ReturnType<typeof renderRules>,
  targets: readonly Target[],
  others: Series,
): Promise<void> {
  const used = new Set(listAlerts(rules).flatMap(({ expr }) => listMetrics(expr)));
  const series: Series = { ...others };
  for (const { labels, metricsUrl } of targets) {
    const lines = await readSeries(metricsUrl, used);
    const names = new Set(lines.map(({ name }) => name));
    for (const one of Object.keys(series))
      if (names.has(one.split('{')[0] ?? '') && one.includes(labels)) delete series[one];
    for (const { name, own, value } of lines)
      series[`${name}{${[labels, own].filter(Boolean).join()}}`] = always(value);
  }
  const { output, status } = evaluateRules(rules, [evaluation('the region', series, [])]);
  expect(output).toContain('SUCCESS');
  expect(status).toBe(0);
}

async function readSeries(metricsUrl: string, used: ReadonlySet<string>) {
  const page = await (await fetch(new URL('/metrics', metricsUrl))).text();
  const lines = [...page.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)];
  return lines
    .map(([, name = '', own = '', value = '']) => ({ name, own, value }))
    .filter(({ name, value }) => used.has(name) && !name.endsWith('_timestamp_seconds') && value !== 'Nan');
}
