import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

/**
 * Opens a shell that keeps its variables and functions from one command to the next, as the one in
 * which a reader types. Returns what runs a command and resolves with its output.
 * @throws Error from a command whose exit code is not 0.
 */
export function openShell(env: Readonly<Record<string, string>>): (command: string) => Promise<string> {
  const shell = spawn('bash', ['-o', 'pipefail'], {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void shell.kill('SIGKILL'));
  const mark = 'the command has ended:';
  const errors: string[] = [];
  createInterface({ input: shell.stderr }).on('line', (line) => errors.push(line));
  const output = createInterface({ input: shell.stdout });
  return async (command) => {
    const lines: string[] = [];
    const ended = new Promise<number>((resolve) => {
      const take = (line: string) => {
        const [before = '', code] = line.split(mark);
        if (before !== '' || code === undefined) lines.push(before);
        if (code === undefined) return;
        output.off('line', take);
        resolve(Number(code));
      };
      output.on('line', take);
    });
    shell.stdin.write(`${command}\necho "${mark}$?"\n`);
    const code = await ended;
    if (code !== 0) throw new Error(`${command}\nended with ${code}: ${errors.slice(-5).join('\n')}`);
    return lines.join('\n');
  };
}
