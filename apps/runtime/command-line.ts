import { writeSync } from 'node:fs';

/** The exit code of a command whose reader is gone, as shells report one that SIGPIPE ended. */
export const closedPipeCode = 141;

/**
 * Does what every command does first: prints its usage when `--help` or `-h` asks for it, and ends
 * it quietly when the reader of its standard output is gone (`orgctl … | head`). A closed
 * standard error, which has only progress, does not end it.
 *
 * @param options - `usage` is null for a command that writes its help itself; `stop` ends what
 *   runs, before the process ends.
 */
export function startCommand(options: { usage: string | null; stop?: () => Promise<unknown> }): void {
  const { usage, stop = async () => {} } = options;
  const asksForHelp = process.argv.slice(2).some((text) => text === '--help' || text === '-h');
  if (usage !== null && asksForHelp) process.exit(printed(usage));
  process.stdout.on('error', (error) => {
    void stop()
      .catch(() => {})
      .finally(() => process.exit(codeOf(error)));
  });
  process.stderr.on('error', () => {});
}

/** Writes to standard output before it returns. Returns the exit code. */
function printed(text: string): number {
  try {
    writeSync(1, `${text.trimEnd()}\n`);
    return 0;
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): number {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EPIPE') return closedPipeCode;
  process.stderr.write(`Standard output cannot be written (${code}).\n`);
  return 1;
}
