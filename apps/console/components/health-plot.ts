import { type HealthBucket, type HealthSpan, healthLooksAt, totalOf } from '#domain/webhooks/health.ts';
import { type Html, html, nothing } from '../web/html.ts';
import { table } from './table.ts';
import { time } from './time.ts';

const kinds = [
  { key: 'atOnce', label: 'delivered on first attempt' },
  { key: 'afterRetries', label: 'delivered after retries' },
  { key: 'open', label: 'pending' },
  { key: 'failed', label: 'failed' },
  { key: 'cancelled', label: 'cancelled' },
] as const;

/** Units of the picture: a bar is 10 wide, with 2 between. */
const heightOfAll = 60;
const stepWidth = 12;

/** Draws a webhook's events over time, oldest first: a bar per hour or day by status, and a table. */
export function healthPlot(buckets: readonly HealthBucket[], span: HealthSpan): Html {
  const highest = Math.max(1, ...buckets.map(totalOf));
  const isCapped = buckets.some((bucket) => bucket.isCapped);
  const word = span === 'hours' ? 'hour' : 'day';
  const width = buckets.length * stepWidth;
  const [oldest, newest] = [buckets[0], buckets.at(-1)];
  // A day is one of UTC, whatever the viewer's zone.
  const label = (bucket?: HealthBucket) =>
    span === 'hours' ? time(bucket?.from ?? null) : (bucket?.from.slice(0, 10) ?? '');
  return html`<figure class="health">
    <svg viewBox="0 0 ${width} ${heightOfAll}" preserveAspectRatio="none" role="img" aria-labelledby="health-title health-description">
      <title id="health-title">Events per ${word}, by status</title>
      <desc id="health-description">${summaryOf(buckets)} The table below lists every ${word}.</desc>
      <defs><pattern id="health-hatch" width="3" height="3" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="health-failed" width="3" height="3"/><rect class="hatch" width="1" height="3"/></pattern></defs>
      <line class="axis" x1="0" x2="${width}" y1="${heightOfAll}" y2="${heightOfAll}"/>
      ${buckets.map((bucket, index) => bar(bucket, index, highest))}
    </svg>
    <div class="health-scale"><span>${label(oldest)}</span><span>maximum per ${word}: ${isCapped ? 'at least ' : ''}${highest.toLocaleString('en')}</span><span>${label(newest)}</span></div>
    <figcaption>${kinds.map(({ key, label }) => html`<span class="step"><svg class="swatch" viewBox="0 0 3 3" aria-hidden="true"><rect ${fillOf(key)} width="3" height="3"/></svg>${label}</span> `)}</figcaption>
    <details class="aside"><summary>View as table</summary>
      ${isCapped ? html`<p class="quiet">For a ${word} with ${healthLooksAt} events or more, the numbers cover its newest ${healthLooksAt}.</p>` : nothing}
      ${table({
        caption: `Events per ${word}`,
        columns: [
          {
            heading: span === 'hours' ? 'Hour from' : 'Day (UTC)',
            main: true,
            cell: label,
          },
          ...kinds.map(({ key, label }) => ({
            heading: label.charAt(0).toUpperCase() + label.slice(1),
            numeric: true,
            cell: (bucket: HealthBucket) => String(bucket[key]),
          })),
        ],
        rows: buckets.filter((bucket) => totalOf(bucket) > 0).reverse(),
      })}
    </details>
  </figure>`;
}

/** Returns the totals in a sentence, for screen readers. */
export function summaryOf(buckets: readonly HealthBucket[]): string {
  const sums = kinds.map(({ key, label }) => {
    const sum = buckets.reduce((count, bucket) => count + bucket[key], 0);
    return `${sum.toLocaleString('en')} ${label}`;
  });
  return `${sums.join(', ')}.`;
}

function bar(bucket: HealthBucket, index: number, highest: number): Html {
  let top = heightOfAll;
  const parts = kinds.map(({ key }) => {
    const count = bucket[key];
    if (count === 0) return nothing;
    const height = Math.round(Math.max((count / highest) * heightOfAll, 0.8) * 10) / 10;
    top = Math.round((top - height) * 10) / 10;
    return html`<rect ${fillOf(key)} x="${index * stepWidth + 1}" y="${Math.max(top, 0)}" width="${stepWidth - 2}" height="${height}"/>`;
  });
  return totalOf(bucket) === 0 ? nothing : html`<g>${parts}</g>`;
}

/** Failed events are hatched too, for people who cannot distinguish red from green. */
const fillOf = (key: (typeof kinds)[number]['key']): Html =>
  key === 'failed' ? html`fill="url(#health-hatch)"` : html`class="health-${key}"`;
