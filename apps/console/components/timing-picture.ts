import { type Html, html } from '#runtime/pages/html.ts';

/** Durations of a request's steps in ms; null or absent for a step that did not complete. */
export type Timings = Readonly<Record<string, number | null | undefined>>;

const steps = [
  { key: 'dns', label: 'DNS lookup' },
  { key: 'connect', label: 'Connect' },
  { key: 'tls', label: 'TLS' },
  { key: 'firstByte', label: 'Waiting (TTFB)' },
] as const;

interface Part {
  key: string;
  label: string;
  ms: number;
}

/**
 * Renders the durations of an attempt: a bar with a part per step, and the same in words.
 *
 * @param scaleMs - the ms of the whole width; pictures on one page share it
 */
export function timingPicture(timings: Timings, scaleMs: number): Html {
  const totalMs = timings.total ?? 0;
  const parts = splitTimings(timings, totalMs);
  const width = (ms: number) => Math.round((ms / Math.max(scaleMs, 1)) * 1_000) / 10;
  let left = 0;
  const bars = parts.map(({ key, ms }) => {
    const x = left;
    left += width(ms);
    return html`<rect class="step-${key}" x="${x}" y="0" width="${Math.max(width(ms), 0.3)}" height="6"/>`;
  });
  const words = [...parts.map(({ label, ms }) => `${label} ${inMs(ms)}`), `Total ${inMs(totalMs)}`];
  const legend = parts.map(
    ({ key, label, ms }) => html`<span class="step">
      <span class="swatch step-${key}" aria-hidden="true"></span>${label} ${inMs(ms)}</span> `,
  );
  return html`<div class="timings">
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="Timing: ${words.join(', ')}">
      <rect class="track" x="0" y="0" width="100" height="6"/>${bars}</svg>
    <p class="quiet">${legend}<span class="step">Total ${inMs(totalMs)}</span></p>
  </div>`;
}

/** Returns the duration of the longest attempt, at least 100 ms, so that fast looks fast. */
export const computeScale = (all: readonly (Timings | null)[]): number =>
  Math.max(100, ...all.map((timings) => timings?.total ?? 0));

function splitTimings(timings: Timings, totalMs: number): Part[] {
  const known = steps.flatMap(({ key, label }): Part[] => {
    const ms = timings[key];
    return typeof ms === 'number' ? [{ key, label, ms }] : [];
  });
  const rest = totalMs - known.reduce((sum, { ms }) => sum + ms, 0);
  if (rest < 1) return known;
  const hasResponse = typeof timings.firstByte === 'number';
  return [...known, { key: 'rest', label: hasResponse ? 'Download' : 'Until failure', ms: rest }];
}

const inMs = (ms: number): string => (ms < 10_000 ? `${ms.toLocaleString('en')} ms` : `${Math.round(ms / 100) / 10} s`);
