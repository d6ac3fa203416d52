import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { InvalidSettingsError } from '../errors.ts';
import { findPlaintext } from './plaintext.ts';

/**
 * Reads an app's settings from its environment through its schema, once, and freezes them.
 *
 * Any setting may come from a file: `NAME_FILE` names it, as Kubernetes provides secrets. An empty
 * value counts as absent. No app connects to a server on another machine without TLS unless
 * `ALLOW_PLAINTEXT` names it.
 *
 * @throws InvalidSettingsError with all problems at once.
 */
export function readSettings<S extends z.ZodObject>(
  schema: S,
  environment: Record<string, string | undefined>,
): Readonly<z.output<S>> {
  const problems: string[] = [];
  const values: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = environment[name] || readNamedFile(name, environment[`${name}_FILE`], problems);
    if (value) values[name] = value;
  }
  const parsed: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(schema.shape)) {
    const result = z.safeParse(type, values[name], { reportInput: false });
    if (result.success) parsed[name] = result.data;
    else if (values[name] === undefined) problems.push(`${name} is missing: ${type.description ?? 'it is required'}`);
    else problems.push(...result.error.issues.map(({ message }) => `${name}: ${message}`));
  }
  problems.push(...findPlaintext(parsed, { ...environment, ...values }));
  if (problems.length > 0) throw new InvalidSettingsError(problems);
  return Object.freeze(parsed as z.output<S>);
}

export const withoutLineEnd = (text: string): string => text.replace(/\r?\n$/, '');

function readNamedFile(name: string, path: string | undefined, problems: string[]): string | undefined {
  if (!path) return undefined;
  try {
    return withoutLineEnd(readFileSync(path, 'utf8'));
  } catch (error) {
    problems.push(
      `${name}_FILE: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`,
    );
    return undefined;
  }
}
