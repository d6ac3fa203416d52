/** Runs tools of other languages for tests: each failure is one sentence with its remedy. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Runs a tool to its end and returns its output.
 *
 * @throws Error `<what> (<the tool's last line>): <remedy>.`
 */
export async function runTool(
  [file, ...args]: readonly [string, ...string[]],
  options: { what: string; remedy: string; cwd?: string; env?: Record<string, string> },
): Promise<string> {
  const { what, remedy, cwd, env } = options;
  try {
    const settings = {
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, ...env },
      ...(cwd !== undefined && { cwd }),
    };
    return (await run(file, args, settings)).stdout;
  } catch (cause) {
    throw new Error(`${what} (${lastWords(file, cause)}): ${remedy}.`, { cause });
  }
}

function lastWords(file: string, cause: unknown): string {
  const {
    code,
    stderr = '',
    stdout = '',
    message,
  } = cause as { stderr?: string; stdout?: string } & NodeJS.ErrnoException;
  if (code === 'ENOENT') return `${file} is not on PATH`;
  return (stderr.trim() || stdout.trim() || message).split('\n').at(-1) ?? message;
}
