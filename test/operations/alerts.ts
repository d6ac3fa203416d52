import { expect } from 'vitest';
import { healthy, type Series } from '../charts/alerts-data.ts';
import { evaluateRules, evaluation, metricsOf, renderAlerts, renderRules } from '../charts/promtool.ts';

/** A process whose metrics Prometheus reads, with the labels that it adds. */
export interface Target {
  labels: string;
  metricsUrl: string;
}

const used = new Set(renderAlerts().flatMap(({ expr }) => metricsOf(expr)));
const always = (value: string) => `${value}x480`;

/**
 * Expects that no alert of the release fires while these processes stay as they are now. What no
 * process of the test shows is as in a healthy release. Times are, too: promtool's clock begins at 0.
 */
export async function expectQuietAlerts(targets: readonly Target[]): Promise<void> {
  const series: Series = { ...healthy };
  for (const { labels, metricsUrl } of targets) {
    const lines = await readSeries(metricsUrl);
    const names = new Set(lines.map(({ name }) => name));
    for (const one of Object.keys(series))
      if (names.has(one.split('{')[0] ?? '') && one.includes(labels)) delete series[one];
    for (const { name, own, value } of lines)
      series[`${name}{${[labels, own].filter(Boolean).join()}}`] = always(value);
  }
  const { output, status } = evaluateRules(renderRules(), [evaluation('the region', series, [])]);
  expect(output).toContain('SUCCESS');
  expect(status).toBe(0);
}

async function readSeries(metricsUrl: string) {
  const page = await (await fetch(new URL('/metrics', metricsUrl))).text();
  const lines = [...page.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)];
  return lines
    .map(([, name = '', own = '', value = '']) => ({ name, own, value }))
    .filter(({ name, value }) => used.has(name) && !name.endsWith('_timestamp_seconds') && value !== 'Nan');
}
