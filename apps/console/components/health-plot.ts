import {
  type HealthBucket,
  type HealthKey,
  type HealthSpan,
  healthKeys,
  healthSpans,
  maxHealthDeliveries,
} from '#domain/webhooks/health.ts';
import type { Html } from '#runtime/pages/html.ts';
import { barChart, type ChartSeries } from './bar-chart.ts';
import { healthLabels } from './status.ts';
import { time, utcDay } from './time.ts';

const tones: Record<HealthKey, ChartSeries<HealthKey>['tone']> = {
  atOnce: 'good',
  afterRetries: 'late',
  pending: 'open',
  retrying: 'failing',
  held: 'held',
  failed: 'bad',
  cancelled: 'quiet',
};
/** The outcomes of events, from the axis upward. */
const healthSeries = healthKeys.map((key) => ({ key, label: healthLabels[key], tone: tones[key] }));

/** Renders events over time by the status of their deliveries, oldest first. */
export function healthPlot(buckets: readonly HealthBucket[], span: HealthSpan): Html {
  const isCapped = buckets.some((bucket) => bucket.isCapped);
  const { each } = healthSpans[span];
  return barChart({
    id: 'health',
    title: `Events per ${each}, by status`,
    period: isByDay(span) ? 'Day' : `${each === 'hour' ? 'Hour' : 'Period'} from`,
    // The legend names what occurs, so that it fits on a phone.
    series: healthSeries.filter(({ key }) => buckets.some((bucket) => bucket[key] > 0)),
    bars: buckets.map((bucket) => ({ ...bucket, label: periodLabel(bucket, span) })),
    note: isCapped
      ? `Where a bar has ${maxHealthDeliveries} events or more, the numbers cover its newest ${maxHealthDeliveries}.`
      : null,
  });
}

const isByDay = (span: HealthSpan): boolean => healthSpans[span].each === 'day';

/** A day is one of UTC, whatever the viewer's zone. */
const periodLabel = ({ from }: HealthBucket, span: HealthSpan) => (isByDay(span) ? utcDay(from) : time(from));
