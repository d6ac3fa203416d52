import { z } from 'zod';
import { dayMs, hourMs } from '#domain/contract/durations.ts';
import { redeliverableDays } from '#domain/webhooks/limits.ts';
import type { Selection } from '#domain/webhooks/redeliveries.ts';
import { dateTimeProblem, parseDateTime, timeZoneField } from '../../../web/date-time.ts';

/** Choices of how far back failed deliveries are redelivered, in hours. */
export const failedSince = [
  { value: '1', label: 'Last hour' },
  { value: '6', label: 'Last 6 hours' },
  { value: '24', label: 'Last 24 hours' },
  { value: '72', label: 'Last 3 days' },
  { value: '168', label: 'Last 7 days' },
  { value: String(redeliverableDays * 24), label: `Last ${redeliverableDays} days` },
] as const;

/** What is redelivered: failed events, or a time range. */
export const redeliverForm = z
  .object({
    what: z.enum(['failed', 'range'], { error: 'Choose which events to redeliver.' }),
    hours: z.enum(failedSince.map(({ value }) => value) as [string, ...string[]]).catch('24'),
    from: z.string().max(30).default(''),
    until: z.string().max(30).default(''),
    zone: timeZoneField,
  })
  .superRefine(({ what, from, until, zone }, context) => {
    if (what !== 'range') return;
    for (const [name, text] of Object.entries({ from, until })) {
      const message = dateTimeProblem(text, zone);
      if (message !== null) context.addIssue({ code: 'custom', path: [name], message });
    }
  });

export type RedeliverFields = z.output<typeof redeliverForm>;

/** Returns the selection of failed events or of a time range. */
export function readSelection({ what, hours, from, until, zone }: RedeliverFields, now: Date): Selection {
  const [begins, ends] = [parseDateTime(from, zone, 'from'), parseDateTime(until, zone, 'until')];
  if (what === 'range' && begins !== null && ends !== null)
    return { from: begins.toISOString(), to: ends.toISOString() };
  // The longest choice loses a minute: at the exact limit it would be too old when it is handled.
  const longest = redeliverableDays * dayMs - 60_000;
  return { failedSince: new Date(now.getTime() - Math.min(Number(hours) * hourMs, longest)).toISOString() };
}
