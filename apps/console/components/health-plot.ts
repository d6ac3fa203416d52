import { type HealthBucket, type HealthSpan, healthLooksAt } from '#domain/webhooks/health.ts';
import type { Html } from '../web/html.ts';
import { barChart, type ChartSeries } from './bar-chart.ts';
import { time } from './time.ts';

/** The outcomes of events, from the axis upward. */
export const healthSeries: readonly ChartSeries<'atOnce' | 'afterRetries' | 'open' | 'failed' | 'cancelled'>[] = [
  { key: 'atOnce', label: 'Delivered on first attempt', tone: 'good' },
  { key: 'afterRetries', label: 'Delivered after retries', tone: 'late' },
  { key: 'open', label: 'Pending', tone: 'open' },
  { key: 'failed', label: 'Failed', tone: 'bad' },
  { key: 'cancelled', label: 'Cancelled', tone: 'quiet' },
];

/** Draws events over time by the status of their deliveries, oldest first: a bar per hour or day. */
export function healthPlot(buckets: readonly HealthBucket[], span: HealthSpan): Html {
  const isCapped = buckets.some((bucket) => bucket.isCapped);
  const word = span === 'hours' ? 'hour' : 'day';
  return barChart({
    id: 'health',
    title: `Events per ${word}, by status`,
    period: span === 'hours' ? 'Hour from' : 'Day (UTC)',
    series: healthSeries,
    bars: buckets.map((bucket) => ({
      ...bucket,
      name: periodName(bucket.from, span),
      label: periodLabel(bucket, span),
    })),
    note: isCapped
      ? `For a ${word} with ${healthLooksAt} events or more, the numbers cover its newest ${healthLooksAt}.`
      : null,
  });
}

/** Returns the begin of a period in UTC, as SVG text shows it. */
export const periodName = (from: string, span: HealthSpan): string =>
  span === 'hours' ? `${from.slice(5, 10)} ${from.slice(11, 16)} UTC` : from.slice(0, 10);

/** A day is one of UTC, whatever the viewer's zone. */
const periodLabel = ({ from }: HealthBucket, span: HealthSpan) => (span === 'hours' ? time(from) : from.slice(0, 10));
