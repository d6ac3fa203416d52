import { z } from 'zod';
import { findEmailProblem } from '#domain/contract/email.ts';

/** Submitted values: texts, and lists of texts for fields that may repeat. */
export type FormValues = Record<string, string | string[]>;

/** The values of a form and their problems. `problem` is about the whole form. */
export interface FormState {
  values: FormValues;
  problems: Record<string, string>;
  problem: string | null;
}

/** Returns the state of a new form with its initial values. */
export const freshForm = (values: FormValues = {}): FormState => ({ values, problems: {}, problem: null });

/** Control characters, which no field accepts; PostgreSQL's text cannot contain NUL. */
const controls = /[^\P{Cc}\t\n\r]/u;

const atMost = (max: number) => `Enter at most ${max.toLocaleString('en')} characters.`;
const notOneLine = 'Remove line breaks and control characters.';

/** One line of text, trimmed, 1 to `max` characters. `what` names it in its errors (`the name`). */
export const line = (what: string, max: number) =>
  z
    .string({ error: `Enter ${what}.` })
    .trim()
    .min(1, `Enter ${what}.`)
    .max(max, atMost(max))
    .refine((text) => !controls.test(text) && !/[\r\n]/.test(text), notOneLine);

/** An email address, by the rule of every address. `what` as for `line`. */
export const emailLine = (what: string) =>
  line(what, 254).superRefine((text, context) => {
    const problem = text === '' ? null : findEmailProblem(text);
    if (problem !== null) context.addIssue({ code: 'custom', message: `Enter ${problem}.` });
  });

/** The same, but it may be empty. */
export const optionalLine = (max: number) =>
  z
    .string()
    .trim()
    .max(max, atMost(max))
    .refine((text) => !controls.test(text) && !/[\r\n]/.test(text), notOneLine)
    .default('');

/**
 * A password or other secret, unchanged, spaces included. The domain checks its length. No page
 * contains it again: a step-up does not carry it.
 */
export const typedSecret = (what: string) =>
  z
    .string({ error: `Enter ${what}.` })
    .min(1, `Enter ${what}.`)
    .max(1_000, atMost(1_000))
    .refine((text) => !text.includes('\u0000'), 'Remove control characters.')
    .meta({ isSecret: true });

/** A list with an element on each line, or separated by commas. It may be empty. */
export const listOfLines = (maxCharacters: number) =>
  z
    .string()
    .max(maxCharacters, atMost(maxCharacters))
    .refine((text) => !controls.test(text), notOneLine)
    .default('')
    .transform((text) => text.split(/[\s,]+/).filter((element) => element !== ''));

const isSecret = (field: z.ZodType): boolean =>
  field.meta()?.isSecret === true || (field instanceof z.ZodOptional && isSecret(field.unwrap() as z.ZodType));

/** Whether a form has a field that no page may contain (`typedSecret`). */
export const hasSecret = (schema: z.ZodObject): boolean =>
  Object.values(schema.shape).some((field) => isSecret(field as z.ZodType));

/** Returns the submitted fields without those that no page may contain. */
export function withoutSecrets(schema: z.ZodObject, sent: URLSearchParams): URLSearchParams {
  const { shape } = schema as z.ZodObject<Record<string, z.ZodType>>;
  return new URLSearchParams([...sent].filter(([name]) => shape[name] === undefined || !isSecret(shape[name])));
}

/** Several of a closed list, for checkboxes of one name. None is an empty list. */
export const choices = <const V extends readonly [string, ...string[]]>(values: V) => z.array(z.enum(values));

/** A box that is checked or not. */
export const checkbox = z
  .literal('on')
  .optional()
  .transform((value) => value === 'on');

/** Picks a schema's fields: lists for fields whose schema is a list, else the last text. */
export function pickValues(schema: z.ZodObject, sent: URLSearchParams): FormValues {
  const values: FormValues = {};
  for (const [name, field] of Object.entries(schema.shape)) {
    const all = sent.getAll(name);
    if (field instanceof z.ZodArray) values[name] = all;
    else if (all.length > 0) values[name] = all.at(-1) ?? '';
  }
  return values;
}

/** Returns the first problem of each field, and of the form as a whole. */
export function collectProblems(error: z.ZodError): Pick<FormState, 'problems' | 'problem'> {
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
export function getText(state: FormState, name: string): string {
  const value = state.values[name];
  return typeof value === 'string' ? value : '';
}

/** The texts of a field that may come several times. */
export function getTexts(state: FormState, name: string): readonly string[] {
  const value = state.values[name];
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
