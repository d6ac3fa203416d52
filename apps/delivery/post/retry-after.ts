/** A receiver cannot postpone its deliveries for longer at a time. */
const maxSeconds = 3_600;

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const time = String.raw`(?<time>\d{2}:\d{2}:\d{2})`;
const month = '(?<month>[A-Z][a-z]{2})';
const weekday = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';

/** The three forms of a date in RFC 9110, 5.6.7; only the first one is to be sent. */
const dateForms = [
  String.raw`^${weekday}, (?<day>\d{2}) ${month} (?<year>\d{4}) ${time} GMT$`,
  String.raw`^[A-Z][a-z]{5,8}, (?<day>\d{2})-${month}-(?<year>\d{2}) ${time} GMT$`,
  String.raw`^${weekday} ${month} (?<day>[ \d]\d) ${time} (?<year>\d{4})$`,
].map((form) => new RegExp(form));

/**
 * Returns the whole seconds of a `Retry-After` header, 0 to 3,600, or null when it has neither
 * form of RFC 9110 (seconds or a date).
 */
export function parseRetryAfter(value: string, nowMs: number): number | null {
  const text = value.trim();
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((parseDate(text, nowMs) - nowMs) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), maxSeconds);
}

/** Returns Unix time in ms; NaN when the text has none of the forms. */
function parseDate(text: string, nowMs: number): number {
  for (const form of dateForms) {
    const found = form.exec(text)?.groups;
    const index = months.indexOf(found?.month ?? '');
    if (found === undefined || index < 0) continue;
    const { day, year = '', time: clock } = found;
    return Date.parse(`${fullYear(year, nowMs)}-${pad(index + 1)}-${pad(Number(day))}T${clock}Z`);
  }
  return Number.NaN;
}

const pad = (value: number) => String(value).padStart(2, '0');

/** Two digits are of this century, unless that is more than 50 years ahead. */
function fullYear(year: string, nowMs: number): number {
  if (year.length === 4) return Number(year);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const full = thisYear - (thisYear % 100) + Number(year);
  return full > thisYear + 50 ? full - 100 : full;
}
