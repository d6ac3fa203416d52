import { z } from 'zod';

/**
 * What the fields of an import document may hold. Messages never repeat a value: it may be a
 * family's name.
 */

/** `is missing` or `must be …`. */
const said = (what: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : `must be ${what}`),
});

/**
 * Texts that PostgreSQL indexes: its index rows end at 2,704 bytes, and these share one with other
 * columns.
 */
const wordLengthMax = 255;
const textLengthMax = 10_000;
const int4Max = 2_147_483_647;

/** Text that PostgreSQL can store: no NUL, and every surrogate in a pair. */
const storable = (max: number) =>
  z
    .string(said('a text'))
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'holds a NUL or half of a surrogate pair')
    .refine((text) => text.length <= max, `is longer than ${max} characters`);

/** Any text, also an empty one. */
export const anyText = storable(textLengthMax);
/** A text with something to read in it. */
export const text = anyText.refine((value) => value.trim() !== '', 'is empty');
/** A short text that things are found by. */
export const word = storable(wordLengthMax).refine((value) => value.trim() !== '', 'is empty');

export const uuid = z.guid(said('a UUID'));
export const yesOrNo = z.boolean(said('true or false'));
export const oneOf = (values: readonly string[]) => z.enum(values, said(`one of ${values.join(', ')}`));

/** A whole number from 0 to what four bytes hold. */
export const count = z.int(said('a whole number')).min(0, 'is negative').max(int4Max, `is larger than ${int4Max}`);

/** A whole number of either sign, as precise as JSON's readers are. Cents may be taken back. */
export const cents = z.int(said('a whole number of at most 15 digits'));

/** `2026-09`. */
export const month = z
  .string(said('a month such as 2026-09'))
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-09');

/** A day of the calendar, `2026-11-20`. */
export const day = z
  .string(said('a day such as 2026-11-20'))
  .refine((value) => /^\d{4}-\d\d-\d\d$/.test(value) && isDay(value), 'must be a day such as 2026-11-20');

const dateTimeForm = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z$/;
const dateTimeExample = 'a UTC date-time such as 2026-11-20T08:30:00.000Z';

/** A UTC date-time ending in Z; becomes one with exactly milliseconds, as every answer shows it. */
export const dateTime = z
  .string(said(dateTimeExample))
  .refine((value) => isDay(dateTimeForm.exec(value)?.[1] ?? ''), `must be ${dateTimeExample}`)
  .transform((value) => (value.length === 24 ? value : new Date(value).toISOString()));

/**
 * `new Date` turns 30 February into 2 March; a year before 1 has no place in PostgreSQL's calendar.
 */
function isDay(value: string): boolean {
  const moment = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(moment.getTime()) && value >= '0001' && moment.toISOString().startsWith(value);
}

/**
 * A list whose items leave the reader one by one (document-reader.ts), so that only its being a
 * list is seen here. May be left out: it then mentions nothing.
 */
export const streamedList = z.array(z.unknown(), said('a list')).optional();
/** The same for an object. */
export const streamedObject = z.looseObject({}, said('an object')).optional();

/** Different texts. */
export const listOf = (item: z.ZodType<string>) =>
  z.array(item, said('a list')).superRefine((values, context) => {
    const seen = new Set<string>();
    for (const [index, value] of values.entries()) {
      if (seen.has(value)) context.addIssue({ code: 'custom', message: 'is in the list twice', path: [index] });
      seen.add(value);
    }
  });

export const price = z.strictObject({ currency: word, cents: count }, said('an object or null'));
