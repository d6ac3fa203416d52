import { z } from 'zod';
import { canonicalEmail, findEmailProblem } from '#domain/contract/email.ts';

/**
 * The types of the fields of a document. No message repeats a value, such as a family's name. A check
 * that is code says in `meta` what JSON Schema can say of it, and never more than it rejects.
 */

/** Texts of the form `is missing` or `must be …`. */
const expected = (what: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : `must be ${what}`),
});

/** For texts in an index, whose rows have at most 2,704 bytes in PostgreSQL. */
const wordLengthMax = 255;
const textLengthMax = 10_000;
const int4Max = 2_147_483_647;

/** Text that PostgreSQL can store: no NUL, and every surrogate in a pair. */
const storable = (max: number) =>
  z
    .string(expected('a text'))
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'holds a NUL or half of a surrogate pair')
    .refine((text) => text.length <= max, `is longer than ${max} characters`)
    .meta({ maxLength: max });

const notBlank = (type: z.ZodString) =>
  type.refine((value) => value.trim() !== '', 'is empty').meta({ pattern: String.raw`\S` });

/** Any text, including an empty one. */
export const anyText = storable(textLengthMax);
/** A text that is not blank. */
export const text = notBlank(anyText);
/** An address, which becomes the form in which addresses are compared. */
export const emailText = text
  .superRefine((value, context) => {
    const problem = value.trim() === '' ? null : findEmailProblem(value);
    if (problem !== null) context.addIssue({ code: 'custom', message: `must be ${problem}` });
  })
  .meta({ pattern: String.raw`^\s*[^\s@]+@[^\s@]+\s*$` })
  .transform(canonicalEmail);
/** A short text that is searched for. */
export const word = notBlank(storable(wordLengthMax));
/** A short name of an organization, as a URL and a form have it: lower-case ASCII. */
export const slug = storable(wordLengthMax).regex(
  /^[a-z0-9][a-z0-9._-]*$/,
  'must be lower-case letters, digits and . _ -, the first of them a letter or a digit',
);

/** A field that is null when it is missing. */
export const orNull = (type: z.ZodType) => type.nullable().default(null);

export const uuid = z.guid(expected('a UUID'));
export const yesOrNo = z.boolean(expected('true or false'));
export const choice = (values: readonly string[]) => z.enum(values, expected(`one of ${values.join(', ')}`));

const countUpTo = (max: number) =>
  z.int(expected('a whole number')).min(0, 'is negative').max(max, `is larger than ${max}`);

/** A whole number from 0 to the largest of four bytes. */
const count = countUpTo(int4Max);
/** The same up to the largest number of seats of one subscription, or of all invoices. */
export const seatCount = countUpTo(10_000_000);
/** The same up to the largest number of one family on one day, so that every sum stays exact. */
export const dayCount = countUpTo(1_000_000);

/** A whole number within the precision of JSON readers. Negative cents are refunds. */
export const cents = z.int(expected('a whole number of at most 15 digits'));

/** A month, `2026-09`. */
export const month = z
  .string(expected('a month such as 2026-09'))
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-09');

/** A calendar day, `2026-11-20`. */
export const day = z
  .string(expected('a day such as 2026-11-20'))
  .refine((value) => /^\d{4}-\d\d-\d\d$/.test(value) && isDay(value), 'must be a day such as 2026-11-20')
  .meta({ format: 'date', examples: ['2026-11-20'] });

const dateTimeForm = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z$/;
const dateTimeExample = 'a UTC date-time such as 2026-11-20T08:30:00.000Z';

/** A UTC date-time that ends in Z. It becomes one with milliseconds, as every response shows it. */
export const dateTime = z
  .string(expected(dateTimeExample))
  .refine((value) => isDay(dateTimeForm.exec(value)?.[1] ?? ''), `must be ${dateTimeExample}`)
  .meta({ format: 'date-time', pattern: 'Z$', examples: ['2026-11-20T08:30:00.000Z'] })
  .transform((value) => (value.length === 24 ? value : new Date(value).toISOString()));

/** `new Date` turns 30 February into 2 March; PostgreSQL has no year before 1. */
function isDay(value: string): boolean {
  const moment = new Date(`${value}T00:00:00.000Z`);
  return !Number.isNaN(moment.getTime()) && value >= '0001' && moment.toISOString().startsWith(value);
}

/** A list whose items are passed on one by one (document-reader.ts). */
export const streamedList = z.array(z.unknown(), expected('a list')).optional();
/** The same for an object. */
export const streamedObject = z.looseObject({}, expected('an object')).optional();

/** A list of distinct texts. */
export const distinctList = (item: z.ZodType<string>) =>
  z
    .array(item, expected('a list'))
    .superRefine((values, context) => {
      const seen = new Set<string>();
      for (const [index, value] of values.entries()) {
        if (seen.has(value)) context.addIssue({ code: 'custom', message: 'is in the list twice', path: [index] });
        seen.add(value);
      }
    })
    .meta({ uniqueItems: true });

export const price = z.strictObject({ currency: word, cents: count }, expected('an object or null'));
