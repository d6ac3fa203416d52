import { writeSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { nameCharacters, plainText } from '#domain/contract/unseen-characters.ts';

/** The exit code of a command whose reader is gone, as shells report one that SIGPIPE ended. */
export const closedPipeCode = 141;

/**
 * Does what every command does first: prints its usage when `--help` or `-h` asks for it, and ends
 * it quietly when the reader of its standard output is gone (`orgctl … | head`). A closed
 * standard error, which has only progress, does not end it.
 *
 * @param options - `usage` is null for a command that writes its help itself; `stop` ends what
 *   runs, before the process ends; `read` reads the options, and what it throws is printed with the
 *   usage on standard error (exit code 2).
 * @returns what `read` returns.
 */
export function startCommand<Options = undefined>(command: {
  usage: string | null;
  stop?: () => Promise<unknown>;
  read?: () => Options;
}): Options {
  const { usage, stop = async () => {}, read = () => undefined as Options } = command;
  const asksForHelp = process.argv.slice(2).some((text) => text === '--help' || text === '-h');
  if (usage !== null && asksForHelp) process.exit(printed(usage));
  process.stdout.on('error', (error) => {
    void stop()
      .catch(() => {})
      .finally(() => process.exit(getExitCode(error)));
  });
  process.stderr.on('error', () => {});
  try {
    return read();
  } catch (error) {
    const [sentence] = (error as Error).message.split('\n');
    process.stderr.write(`${sentence}\n\n${usage?.trimEnd()}\n`);
    process.exit(2);
  }
}

/**
 * Returns how the caller runs this program: with npm (`npm run -s orgctl --`) when npm started it,
 * else with its file, as in a pod, whose image has no npm.
 */
export function calledAs(npmCall: string): string {
  const [, script] = /^npm run (?:-s )?(\S+)/.exec(npmCall) ?? [];
  const file = path.relative(process.cwd(), process.argv[1] ?? '');
  return process.env.npm_lifecycle_event === script ? npmCall : `node ${file}`;
}

/**
 * Returns a text of other people in one line, with the names (`[U+202E]`) of characters that a
 * terminal would obey, or that change the order of the text or hide in it.
 */
export const printable = (text: string): string =>
  plainText(text).replace(/[\n\t]/g, (one) => `[${nameCharacters(one)}]`);

/** Rejects all arguments, for commands without any. */
export const readNoOptions = (): void => void parseArgs({ options: {} });

/** @throws Error that names the option, unless its text is a whole number from 1 to `max`. */
export function readWhole(name: string, text: string, max: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw new Error(`${name} must be a whole number from 1 to ${max}.`);
}

/** Writes to standard output before it returns. Returns the exit code. */
function printed(text: string): number {
  try {
    writeSync(1, `${text.trimEnd()}\n`);
    return 0;
  } catch (error) {
    return getExitCode(error);
  }
}

function getExitCode(error: unknown): number {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EPIPE') return closedPipeCode;
  process.stderr.write(`Standard output cannot be written (${code}).\n`);
  return 1;
}
