import { spawn } from 'node:child_process';

/**
 * A program of the cluster's tools (kubectl, helm, buildah) failed or could not be run; the message
 * ends with its output.
 */
export class CommandFailedError extends Error {
  readonly stderr: string;

  constructor(what: string, stderr: string) {
    super(`${what}: ${stderr.trim().split('\n').slice(-5).join(' | ') || 'no reason given'}`);
    this.stderr = stderr;
  }
}

export interface CommandOptions {
  env: NodeJS.ProcessEnv;
  /** Written to its standard input. */
  input?: string;
  timeoutMs?: number;
  /** Whether standard error is part of the output, after the rest. */
  withStderr?: boolean;
  cwd?: string;
}

/**
 * Runs a program to its end and returns its standard output. @throws CommandFailedError when its
 * exit code is not 0, or it takes longer than `timeoutMs` (2 minutes).
 */
export function runCommand(program: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const { env, input, timeoutMs = 120_000, withStderr = false, cwd } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const what = `${program} ${args.slice(0, 3).join(' ')}`;
    child.once('error', (error) => reject(new CommandFailedError(what, error.message)));
    child.once('close', (code, signal) => {
      if (code === 0) resolve(withStderr ? stdout + stderr : stdout);
      else reject(new CommandFailedError(what, stderr || stdout || `it ended with ${code ?? signal}`));
    });
    child.stdin.on('error', () => {}); // a program that does not read closes it early
    child.stdin.end(input);
  });
}
