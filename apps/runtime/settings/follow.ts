import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import type { PostgresServer } from '#domain/db/server.ts';
import { readSettings, withoutLineEnd } from './read.ts';
import type { RedisServer } from './redis.ts';

/** Reports changes of followed settings: names and reasons, never values. */
interface FollowReport {
  onChanged: (name: string) => void;
  /** Called once for each new value that is refused; the old value stays in use. */
  onRefused: (name: string, reason: string) => void;
}

/** Settings whose files are read again while the app runs. */
export interface FollowedSettings<V> {
  /** The current values; each look-up returns the newest. */
  readonly values: Readonly<V>;
  /** The settings that come from a file and are therefore followed. */
  readonly names: readonly string[];
  /** Reads every file once. */
  check(report: FollowReport): void;
}

/** Returns why a new value cannot replace the old one, as the end of a sentence, or null. */
type MayReplace = (old: unknown, next: unknown) => string | null;

/**
 * Reads the settings of a schema, and follows those of `names` that come from files (`NAME_FILE`),
 * which Kubernetes replaces when their Secret changes. Contents are compared, not times: a Secret
 * that is written again with the same value changes nothing.
 *
 * @throws SettingsRefused with every problem at once.
 */
export function readFollowedSettings<S extends z.ZodObject, N extends string & keyof z.output<S>>(options: {
  schema: S;
  environment: Record<string, string | undefined>;
  names: readonly N[];
  mayReplace?: Partial<Record<N, MayReplace>>;
}): { settings: Readonly<z.output<S>>; followed: FollowedSettings<Pick<z.output<S>, N>> } {
  const { schema, environment, names, mayReplace = {} as Partial<Record<N, MayReplace>> } = options;
  const settings = readSettings(schema, environment);
  const values = Object.fromEntries(names.map((name) => [name, settings[name]])) as Pick<z.output<S>, N>;
  const files = names.flatMap((name) => {
    const path = environment[name] ? undefined : environment[`${name}_FILE`];
    const text = path && read(path);
    return path ? [{ name, path, seen: text, inUse: text }] : [];
  });

  function check(report: FollowReport): void {
    for (const file of files) {
      const text = read(file.path);
      if (text === file.seen) continue;
      file.seen = text;
      if (text === file.inUse) {
        report.onChanged(file.name); // the value in use again, after one that was refused
        continue;
      }
      const reason = take(file, text);
      if (reason === null) report.onChanged(file.name);
      else report.onRefused(file.name, reason);
    }
  }

  /** Returns null when the text's value is already in use. */
  function take(file: { name: N; inUse: string | undefined }, text: string | undefined): string | null {
    if (!text) return text === '' ? 'its file is empty' : 'its file cannot be read';
    const result = schema.shape[file.name]?.safeParse(text, { reportInput: false });
    if (!result?.success) return result?.error.issues[0]?.message ?? 'it cannot be understood';
    const refusal = mayReplace[file.name]?.(values[file.name], result.data);
    if (refusal) return refusal;
    values[file.name] = result.data as Pick<z.output<S>, N>[N];
    file.inUse = text;
    return null;
  }

  return { settings, followed: { values, names: files.map(({ name }) => name), check } };
}

/** Only the login may change: another server or database is another installation. */
export const sameButLogin: MayReplace = (old, next) => {
  const [before, after] = [old, next].map((server) => {
    const { user, password, tls, ...place } = server as PostgresServer | RedisServer;
    return JSON.stringify([place, tls?.isVerified]);
  });
  return before === after ? null : 'it names another server, which takes effect when the process restarts';
};

function read(path: string): string | undefined {
  try {
    return withoutLineEnd(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
