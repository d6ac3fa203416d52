import { InvalidSettingsError } from '../errors.ts';
import { InvalidValueError } from './connection-url.ts';

/** Returns why a parsed value cannot replace the old one, as the end of a sentence, or null. */
export type TryValue<T> = (next: T, old: T) => Promise<string | null>;

interface TriedOptions<T> {
  /** @throws InvalidValueError or InvalidSettingsError */
  parse: (text: string) => T;
  /** Absent: a value that can be parsed can be used. */
  tryValue?: TryValue<T> | undefined;
}

/** Receives changes of a value: reasons, never the value. */
interface ValueReport {
  onChanged: () => void;
  /** Called once for each new text and reason; the old value stays in use. */
  onRejected: (reason: string) => void;
}

/**
 * A value that is read again while the process runs. A new text replaces the old one only after it
 * was parsed and tried, for example by a connection with it, so a bad one stops nothing.
 */
export class TriedValue<T> {
  #text: string;
  #value: T;
  #rejected: string | null = null;
  #offering: Promise<void> = Promise.resolve();
  readonly #options: TriedOptions<T>;

  /** The first value is the caller's: no other one could be used instead. */
  constructor(text: string, value: T, options: TriedOptions<T>) {
    this.#text = text;
    this.#value = value;
    this.#options = options;
  }

  get value(): T {
    return this.#value;
  }

  /** The text that the value was parsed from. */
  get text(): string {
    return this.#text;
  }

  /**
   * Replaces the value by that of a new text. What is rejected is tried again by the next call,
   * because the server may accept it later. Offers of several callers are tried one after the other,
   * so that all of them get one value.
   *
   * @param text - undefined: it could not be read.
   */
  offer(text: string | undefined, report: ValueReport): Promise<void> {
    const offered = this.#offering.then(() => this.#offer(text, report));
    this.#offering = offered.catch(() => {});
    return offered;
  }

  async #offer(text: string | undefined, report: ValueReport): Promise<void> {
    if (text === this.#text) {
      if (this.#rejected !== null) report.onChanged();
      this.#rejected = null;
      return;
    }
    const reason = await this.#replace(text);
    const rejected = reason === null ? null : `${reason}\n${text}`;
    if (reason === null) report.onChanged();
    else if (rejected !== this.#rejected) report.onRejected(reason);
    this.#rejected = rejected;
  }

  async #replace(text: string | undefined): Promise<string | null> {
    if (!text) return text === '' ? 'it is empty' : 'it cannot be read';
    try {
      const next = this.#options.parse(text);
      const reason = (await this.#options.tryValue?.(next, this.#value)) ?? null;
      if (reason !== null) return reason;
      this.#value = next;
      this.#text = text;
      return null;
    } catch (error) {
      if (error instanceof InvalidValueError) return error.message;
      if (error instanceof InvalidSettingsError) return error.problems.join('; ');
      throw error;
    }
  }
}
