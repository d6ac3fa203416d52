import { z } from 'zod';

/**
 * What a form held as it was sent: texts, and a list of texts for each field that may come several
 * times.
 */
export type FormValues = Record<string, string | string[]>;

/**
 * How a form is drawn: empty, or again with what was typed and what is wrong with it. `problem` is
 * about the form as a whole.
 */
export interface FormState {
  values: FormValues;
  problems: Record<string, string>;
  problem: string | null;
}

/** A form that nobody has sent yet, with what its fields begin with. */
export const freshForm = (values: FormValues = {}): FormState => ({ values, problems: {}, problem: null });

/**
 * Characters that no field takes: PostgreSQL has no text with NUL, and the other controls have no
 * business in a line.
 */
const controls = /[^\P{Cc}\t\n\r]/u;

/**
 * One line of text, trimmed, from 1 to `max` characters; `what` begins the sentence that refuses it
 * (`The name`).
 */
export const line = (what: string, max: number) =>
  z
    .string({ error: `${what} is missing.` })
    .trim()
    .min(1, `${what} is missing.`)
    .max(max, `${what} is longer than ${max} characters.`)
    .refine(
      (text) => !controls.test(text) && !/[\r\n]/.test(text),
      `${what} contains characters that are not allowed.`,
    );

/** The same, but it may be empty. */
export const optionalLine = (what: string, max: number) =>
  z
    .string()
    .trim()
    .max(max, `${what} is longer than ${max} characters.`)
    .refine((text) => !controls.test(text) && !/[\r\n]/.test(text), `${what} contains characters that are not allowed.`)
    .default('');

/**
 * A password or the like: taken as typed, blanks and all. The domain judges its length. No page
 * ever holds it again: a step-up does not carry it.
 */
export const typedSecret = (what: string) =>
  z
    .string({ error: `${what} is missing.` })
    .min(1, `${what} is missing.`)
    .max(1_000, `${what} is too long.`)
    .refine((text) => !text.includes('\u0000'), `${what} contains characters that are not allowed.`)
    .meta({ isSecret: true });

/** Whether a form has a field that no page may hold (`typedSecret`). */
export const hasSecret = (schema: z.ZodObject): boolean =>
  Object.values(schema.shape).some((field) => (field as z.ZodType).meta()?.isSecret === true);

/** Several of a closed list, for checkboxes of one name. None is an empty list. */
export const choices = <const V extends readonly [string, ...string[]]>(values: V) => z.array(z.enum(values));

/** A box that is checkbox or not. */
export const checkbox = z
  .literal('on')
  .optional()
  .transform((value) => value === 'on');

/**
 * Reads sent fields by a schema: those whose schema is a list come as lists, all others as their
 * last text. Unknown fields are dropped.
 */
export function valuesOf(schema: z.ZodObject, sent: URLSearchParams): FormValues {
  const values: FormValues = {};
  for (const [name, field] of Object.entries(schema.shape)) {
    const all = sent.getAll(name);
    if (field instanceof z.ZodArray) values[name] = all;
    else if (all.length > 0) values[name] = all.at(-1) ?? '';
  }
  return values;
}

/** The first problem of each field, by its name; what belongs to no field is the form's. */
export function problemsOf(error: z.ZodError): Pick<FormState, 'problems' | 'problem'> {
  const problems: Record<string, string> = {};
  let problem: string | null = null;
  for (const { path, message } of error.issues) {
    const field = path[0];
    if (field === undefined) problem ??= message;
    else problems[String(field)] ??= message;
  }
  return { problems, problem };
}

/** The text of a field that comes once. */
export function textOf(state: FormState, name: string): string {
  const value = state.values[name];
  return typeof value === 'string' ? value : '';
}

/** The texts of a field that may come several times. */
export function listOf(state: FormState, name: string): readonly string[] {
  const value = state.values[name];
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
