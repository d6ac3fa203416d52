import { type Html, html, nothing } from '../web/html.ts';

/**
 * A moment, in the viewer's own zone by the script, with UTC on hover; without script in UTC.
 * `moment` is a Date or ISO text; null becomes `otherwise`.
 */
export function time(moment: Date | string | null, otherwise = '—'): Html {
  return drawn(moment, otherwise, nothing);
}

/** The same with seconds, for what follows quickly on each other. */
export function exactTime(moment: Date | string | null, otherwise = '—'): Html {
  return drawn(moment, otherwise, html` data-exact`);
}

/** The same as a distance (`in 3 minutes`, `2 hours ago`), kept current by the script. */
export function relativeTime(moment: Date | string | null, otherwise = '—'): Html {
  return drawn(moment, otherwise, html` data-relative`);
}

/** The day of a moment alone. */
export function day(moment: Date): Html {
  return drawn(moment, '', html` data-day`);
}

function drawn(moment: Date | string | null, otherwise: string, how: Html): Html {
  if (moment === null) return html`<span class="quiet">${otherwise}</span>`;
  const iso = (typeof moment === 'string' ? new Date(moment) : moment).toISOString();
  const utc = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
  return html`<time datetime="${iso}" title="${utc}"${how}>${utc}</time>`;
}
