import { attributes, type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { table } from './table.ts';

/** What a part of each bar counts. `tone` is its color; `bad` is hatched too. */
export interface ChartSeries<Key extends string> {
  key: Key;
  label: string;
  tone: 'good' | 'late' | 'open' | 'failing' | 'held' | 'bad' | 'quiet';
}

/** One bar. `label` says its period, on the axis, in its tooltip and in the table. */
type ChartBar<Key extends string> = Readonly<Record<Key, number>> & { label: Child };

interface Chart<Key extends string> {
  /** Unique in the page. */
  id: string;
  /** What the bars count and per what: `Events per hour`. */
  title: string;
  /** The heading of the periods in the table. */
  period: string;
  series: readonly ChartSeries<Key>[];
  /** Oldest first. */
  bars: readonly ChartBar<Key>[];
  /** A sentence about the numbers, for example that a bar is not complete. */
  note?: Child;
}

/** Units of the picture, which is stretched to the width of the page. */
const size = { bar: 12, gap: 2, height: 100 };

/**
 * Renders counts over time as bars with axes, a tooltip for each bar, a legend, and the same
 * numbers in a sentence and in a table.
 */
export function barChart<Key extends string>(chart: Chart<Key>): Html {
  const { id, title, period, series, bars, note } = chart;
  const total = (bar: ChartBar<Key>) => series.reduce((sum, { key }) => sum + bar[key], 0);
  const ticks = axisTicks(Math.max(1, ...bars.map(total)));
  const top = ticks.at(-1) ?? 1;
  return html`<figure class="chart">
    <div class="plot">
      <div class="y-axis" aria-hidden="true">
        ${ticks.map((tick) => html`<span>${tick.toLocaleString('en')}</span>`)}</div>
      <svg viewBox="0 0 ${bars.length * size.bar} ${size.height}" preserveAspectRatio="none" role="img"
        aria-labelledby="${id}-title ${id}-text">
        <title id="${id}-title">${title}</title>
        <desc id="${id}-text">${formatSums(series, bars)} The table lists every ${period.toLowerCase()}.</desc>
        ${hatchPattern(id)}
        ${ticks.map((tick) => gridLine(tick, top, bars.length))}
        ${bars.map((bar, index) => renderBar(id, series, bar, index, top))}
      </svg>
      <div class="x-axis" aria-hidden="true">${axisLabels(bars)}</div>
    </div>
    <figcaption>${series.map(
      ({ tone, label }) => html`<span class="step"><svg class="swatch" viewBox="0 0 4 4" aria-hidden="true">
        <rect ${renderFill(id, tone)} width="4" height="4"/></svg>${label}</span> `,
    )}</figcaption>
    ${note ? html`<p class="quiet">${note}</p>` : nothing}
    <details class="aside"><summary>View as table</summary>
      ${table({
        caption: title,
        columns: [
          { heading: period, main: true, cell: ({ label }: ChartBar<Key>) => label },
          ...series.map(({ key, label }) => ({
            heading: label,
            numeric: true,
            cell: (bar: ChartBar<Key>) => bar[key].toLocaleString('en'),
          })),
        ],
        rows: bars.filter((bar) => total(bar) > 0).reverse(),
      })}
    </details>
  </figure>`;
}

/** Returns the sums of all bars in a sentence: `12 delivered, 1 failed.` */
function formatSums<Key extends string>(series: readonly ChartSeries<Key>[], bars: readonly ChartBar<Key>[]): string {
  const sums = series.map(({ key, label }) => {
    const sum = bars.reduce((count, bar) => count + bar[key], 0);
    return `${sum.toLocaleString('en')} ${label.toLowerCase()}`;
  });
  return `${sums.join(', ')}.`;
}

/** Returns whole numbers for the axis: 0, the top, and one to four between, all one step apart. */
export function axisTicks(highest: number): number[] {
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  const apart =
    [0.2, 0.5, 1, 2, 5].map((part) => part * magnitude).find((each) => highest / each <= 5 && each >= 1) ?? 1;
  const count = Math.ceil(highest / apart);
  return Array.from({ length: count + 1 }, (_, index) => Math.round(index * apart));
}

const round = (length: number): number => Math.round(length * 10) / 10;
const computeY = (count: number, top: number): number => round(size.height * (1 - count / top));

function gridLine(tick: number, top: number, bars: number): Html {
  const y = computeY(tick, top);
  return html`<line class="${tick === 0 ? 'axis' : 'grid'}" x1="0" x2="${bars * size.bar}" y1="${y}" y2="${y}"/>`;
}

/** Renders the names of the first, middle and last bar. */
function axisLabels<Key extends string>(bars: readonly ChartBar<Key>[]): Html {
  const indexes = new Set([0, Math.floor(bars.length / 2), bars.length - 1]);
  return html`${[...indexes].map((index) => html`<span>${bars[index]?.label}</span>`)}`;
}

function renderBar<Key extends string>(
  id: string,
  series: readonly ChartSeries<Key>[],
  bar: ChartBar<Key>,
  index: number,
  top: number,
): Html {
  const x = index * size.bar;
  let y = computeY(0, top);
  const parts = series.map(({ key, tone }) => {
    if (bar[key] === 0) return nothing;
    // One among many is seen too.
    const height = round(Math.max((bar[key] / top) * size.height, 1));
    y = round(Math.max(y - height, 0));
    const bounds = attributes({ x: x + size.gap / 2, y, width: size.bar - size.gap, height });
    return html`<rect ${renderFill(id, tone)}${bounds}/>`;
  });
  const counts = series
    .filter(({ key }) => bar[key] > 0)
    .map(({ key, label }) => `${bar[key].toLocaleString('en')} ${label.toLowerCase()}`);
  return html`<g class="bar"><title>${bar.label}: ${counts.length === 0 ? 'none' : counts.join(', ')}</title>
    <rect class="ground" x="${x}" y="0" width="${size.bar}" height="${size.height}"/>${parts}</g>`;
}

/** Failures are hatched too, for people who cannot distinguish red from green. */
const renderFill = (id: string, tone: ChartSeries<string>['tone']): Html =>
  tone === 'bad' ? html`fill="url(#${id}-hatch)"` : html`class="chart-${tone}"`;

const hatchPattern = (id: string): Html => html`<defs>
  <pattern id="${id}-hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <rect class="chart-bad" width="4" height="4"/><rect class="hatch" width="1" height="4"/></pattern></defs>`;
