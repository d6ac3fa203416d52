import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/** How a command ended. The code is null after a signal. */
export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs a program of the repository without a terminal and with these variables alone, to its end.
 * Never rejects: the exit code is part of the result.
 *
 * @param args - the program's file in the repository, and its arguments.
 * @param isClosed - whether its standard output has no reader.
 */
export async function runCommand(args: readonly string[], env: Record<string, string>, isClosed = false): Promise<Ran> {
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  if (isClosed) child.stdout.destroy();
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}
