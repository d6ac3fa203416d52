/** The longest wait of the schedule. A receiver cannot postpone its deliveries beyond it. */
const maxSeconds = 86_400;

const httpDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Returns the whole seconds of a `Retry-After` header, 0 to 86,400, or null when it has neither
 * form of RFC 9110 (seconds or a date).
 */
export function parseRetryAfter(value: string, nowMs: number): number | null {
  const text = value.trim();
  const seconds = /^\d+$/.test(text)
    ? Number(text)
    : httpDate.test(text)
      ? Math.ceil((Date.parse(text) - nowMs) / 1000)
      : Number.NaN;
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), maxSeconds);
}
