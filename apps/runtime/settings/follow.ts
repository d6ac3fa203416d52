import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { InvalidValueError } from './connection-url.ts';
import { readSettings, withoutLineEnd } from './read.ts';
import { TriedValue, type TryValue } from './tried-value.ts';

/** Reports changes of followed settings: names and reasons, never values. */
export interface FollowReport {
  onChanged: (name: string) => void;
  /** Called once for each new value and reason; the old value stays in use. */
  onRejected: (name: string, reason: string) => void;
}

/** Settings whose files are read again while the app runs. */
export interface FollowedSettings<V> {
  /** The current values; each look-up returns the newest. */
  readonly values: Readonly<V>;
  /** The settings that come from a file and are therefore followed. */
  readonly names: readonly string[];
  /** Reads every file once, and tries what is new. */
  check(report: FollowReport): Promise<void>;
}

/**
 * Reads the settings of a schema, and follows those of `names` that come from files (`NAME_FILE`),
 * which Kubernetes replaces when their Secret changes. Contents are compared, not times: a Secret
 * that is written again with the same value changes nothing. A new value is parsed by the schema
 * and tried by the function of `tries` before it is used.
 *
 * @throws InvalidSettingsError with every problem at once.
 */
export function readFollowedSettings<S extends z.ZodObject, N extends string & keyof z.output<S>>(options: {
  schema: S;
  environment: Record<string, string | undefined>;
  names: readonly N[];
  tries?: { readonly [K in N]?: TryValue<NonNullable<z.output<S>[K]>> };
}): { settings: Readonly<z.output<S>>; followed: FollowedSettings<Pick<z.output<S>, N>> } {
  const { schema, environment, names, tries } = options;
  const texts = new Map(names.map((name) => [name, environment[name] ? undefined : readFile(environment, name)]));
  const settings = readSettings(schema, environment);
  const files = new Map(
    [...texts].flatMap(([name, text]) => {
      if (text === undefined) return [];
      const tryValue = tries?.[name] as TryValue<unknown> | undefined;
      return [[name, new TriedValue<unknown>(text, settings[name], { parse: createParser(schema, name), tryValue })]];
    }),
  );
  const values = Object.defineProperties(
    {},
    Object.fromEntries(names.map((name) => [name, { get: () => files.get(name)?.value ?? settings[name] }])),
  ) as Pick<z.output<S>, N>;

  async function check(report: FollowReport): Promise<void> {
    for (const [name, file] of files)
      await file.offer(readFile(environment, name), {
        onChanged: () => report.onChanged(name),
        onRejected: (reason) => report.onRejected(name, reason),
      });
  }

  return { settings, followed: { values, names: [...files.keys()], check } };
}

function createParser(schema: z.ZodObject, name: string): (text: string) => unknown {
  return (text) => {
    const result = schema.shape[name]?.safeParse(text, { reportInput: false });
    if (result?.success) return result.data;
    throw new InvalidValueError(result?.error.issues[0]?.message ?? 'cannot be understood');
  };
}

function readFile(environment: Record<string, string | undefined>, name: string): string | undefined {
  const path = environment[`${name}_FILE`];
  if (!path) return undefined;
  try {
    return withoutLineEnd(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
