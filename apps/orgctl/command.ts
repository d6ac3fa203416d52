import { momentAt, parseMoment } from '#domain/contract/moment.ts';
import type { Region } from '#domain/contract/regions.ts';
import type { Database } from '#domain/db/database.ts';
import { UsageError } from '#runtime/errors.ts';
import type { WorkflowClient } from '#workflows/client.ts';
import type { Environment, OrgctlConfig } from './config.ts';

/** One option of a command; `value` is its placeholder in the help, null for a flag. */
interface CommandOption {
  value: string | null;
  about: string;
  required?: boolean;
}

export const orgOption = { org: { value: 'ID', about: 'the organization', required: true } };
export const webhookOption = { webhook: { value: 'ID', about: 'the webhook', required: true } };

/** What a command works with. */
export interface Context {
  config: OrgctlConfig;
  database: Database;
  /** Writes to standard error: progress, and what failed beside the result. */
  report: (line: string) => void;
  /**
   * Opens the client that sends test events through a worker. Returns null when Temporal is not
   * configured or does not answer, which has been reported.
   */
  openWorkflows: () => Promise<WorkflowClient | null>;
}

/** The output of a command: a document for programs, and a text for people. */
export interface CommandResult {
  json: unknown;
  text: string;
  /** What failed, in a sentence; the response is printed as well, and the exit code is 1. */
  failure?: string;
}

/** One command: `orgctl NOUN VERB`. A noun that needs no verb has the verb ''. */
export interface Command {
  verb: string;
  summary: string;
  options: Record<string, CommandOption>;
  run: ((options: Options, context: Context) => Promise<CommandResult>) | OwnRun;
}

/** What a command does that reads its own settings and opens its own connections. */
export class OwnRun {
  readonly start: (region: Region, environment: Environment) => Promise<CommandResult>;

  constructor(start: OwnRun['start']) {
    this.start = start;
  }
}

export interface Noun {
  noun: string;
  summary: string;
  commands: Command[];
}

/** The options of one call, by name. A missing or malformed one throws UsageError. */
export class Options {
  readonly #values: Record<string, string | boolean | undefined>;

  constructor(values: Record<string, string | boolean | undefined>) {
    this.#values = values;
  }

  /** Returns whether an option without a value was given. */
  has(name: string): boolean {
    return this.#values[name] === true;
  }

  /** Returns null when the option was left out. */
  find(name: string): string | null {
    const value = this.#values[name];
    return typeof value === 'string' ? value : null;
  }

  /** Returns a value that is not empty. */
  get(name: string): string {
    const value = this.find(name);
    if (value === null || value === '') throw new UsageError(`--${name} is missing.`);
    return value;
  }

  /** Returns a UUID in lower case. */
  getId(name: string): string {
    const id = this.get(name);
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id))
      throw new UsageError(`--${name}: enter an ID, for example 0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d.`);
    return id.toLowerCase();
  }

  /** Returns the same, or null when it was left out. */
  findId(name: string): string | null {
    return this.find(name) === null ? null : this.getId(name);
  }

  /** Returns one of the values, or null when it was left out. */
  findChoice<Value extends string>(name: string, values: readonly Value[]): Value | null {
    const requested = this.find(name);
    const value = values.find((one) => one === requested) ?? null;
    if (requested !== null && value === null) throw new UsageError(`--${name} must be one of ${values.join(', ')}.`);
    return value;
  }

  /** Returns parts separated by commas, none of them empty; null when it was left out. */
  findList(name: string): string[] | null {
    const value = this.find(name);
    if (value === null) return null;
    return value
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  }

  /** Returns a limit from 1 to 100,000, or `otherwise` when it was left out. */
  getLimit(otherwise: number): number {
    const text = this.find('limit') ?? String(otherwise);
    const limit = Number(text);
    if (!/^\d+$/.test(text) || limit < 1 || limit > 100_000)
      throw new UsageError('--limit: enter a number from 1 to 100000.');
    return limit;
  }

  /** Returns a time: an ISO 8601 date-time with its offset, or a duration ago (90m, 6h, 3d). */
  getMoment(name: string): string {
    const text = this.get(name);
    const isDuration = /^\d{1,9}[smhd]$/.test(text);
    const at = isDuration ? momentAt(Date.now() - durationSeconds(text) * 1000) : parseMoment(text);
    if (at === null)
      throw new UsageError(
        `--${name}: enter a time with its offset (2026-11-20T08:00:00Z), or how long ago it was (90m, 6h, 3d).`,
      );
    return at.toISOString();
  }

  /** Returns the seconds of a duration such as 0, 90m, 24h, 7d, or null when it was left out. */
  findSeconds(name: string): number | null {
    const text = this.find(name);
    if (text === null) return null;
    if (text === '0') return 0;
    if (!/^\d{1,9}[smhd]$/.test(text))
      throw new UsageError(`--${name}: enter a duration, for example 0, 90m, 24h or 7d.`);
    return durationSeconds(text);
  }
}

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

function durationSeconds(text: string): number {
  return Number(text.slice(0, -1)) * (unitSeconds[text.slice(-1)] ?? 0);
}
