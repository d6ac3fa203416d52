import { dayMs } from '#domain/contract/durations.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';

/** Renders a time: UTC, which the script shows in the viewer's zone. Null becomes `otherwise`. */
export function time(at: Date | string | null, otherwise = '–'): Html {
  return rendered(at, otherwise, nothing);
}

/** Renders a time with seconds. */
export function exactTime(at: Date | string | null, otherwise = '–'): Html {
  return rendered(at, otherwise, html` data-exact`);
}

/** Renders a time with seconds and its zone. */
export function zonedTime(at: Date | string | null, otherwise = '–'): Html {
  return rendered(at, otherwise, html` data-zoned`);
}

/** Renders a relative time (`in 3 minutes`), which the script keeps current. */
export function relativeTime(at: Date | string | null, otherwise = '–'): Html {
  return rendered(at, otherwise, html` data-relative`);
}

export function day(at: Date): Html {
  return rendered(at, '', html` data-day`);
}

/** Renders the day of a time, and of one within a day from `now` also the hour. */
export const dayOrTime = (at: Date, now: Date): Html =>
  Math.abs(at.getTime() - now.getTime()) < dayMs ? time(at) : day(at);

const days = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', month: 'short', day: 'numeric', year: 'numeric' });

/** Returns a day of UTC, for example `Nov 23, 2026 UTC`, whatever the viewer's zone. */
export const utcDay = (iso: string): string => `${days.format(new Date(iso))} UTC`;

function rendered(at: Date | string | null, otherwise: string, how: Html): Html {
  const date = new Date(at ?? Number.NaN);
  // PostgreSQL knows times that JavaScript does not: infinity, and years above 275760.
  if (Number.isNaN(date.getTime())) return html`<span class="quiet">${otherwise}</span>`;
  const iso = date.toISOString();
  const utc = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
  return html`<time datetime="${iso}" title="${utc}"${how}>${utc}</time>`;
}
