import { type Html, html, nothing } from '../web/html.ts';

/** Draws a time: UTC, which the script shows in the viewer's zone. Null becomes `otherwise`. */
export function time(at: Date | string | null, otherwise = '–'): Html {
  return drawn(at, otherwise, nothing);
}

/** Draws a time with seconds. */
export function exactTime(at: Date | string | null, otherwise = '–'): Html {
  return drawn(at, otherwise, html` data-exact`);
}

/** Draws a relative time (`in 3 minutes`), which the script keeps current. */
export function relativeTime(at: Date | string | null, otherwise = '–'): Html {
  return drawn(at, otherwise, html` data-relative`);
}

/** Draws the date of a time. */
export function day(at: Date): Html {
  return drawn(at, '', html` data-day`);
}

function drawn(at: Date | string | null, otherwise: string, how: Html): Html {
  if (at === null) return html`<span class="quiet">${otherwise}</span>`;
  const iso = (typeof at === 'string' ? new Date(at) : at).toISOString();
  const utc = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
  return html`<time datetime="${iso}" title="${utc}"${how}>${utc}</time>`;
}
