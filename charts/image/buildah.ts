import { execFileSync } from 'node:child_process';
import path from 'node:path';

/** Returns a function that runs buildah with a store of its own, which needs no mounts. */
export function openStore(work: string): (...args: string[]) => string {
  const store = ['--storage-driver', 'vfs', '--root', path.join(work, 'store'), '--runroot', path.join(work, 'run')];
  return (...args) => run('buildah', [...store, ...args]).trim();
}

/**
 * Builds by a Dockerfile in buildah's store, which keeps the layers for the next time, and returns the id of the image.
 * All files have the time 0: a layer is the same whenever it was built, and the layers of packages are the same from
 * commit to commit.
 */
export function buildFrom(file: string, { context, options }: { context: string; options: readonly string[] }): string {
  const flags = [...options, '--quiet', '--isolation', 'chroot', '--layers', '--timestamp', '0', '--file', file];
  return run('buildah', ['build', ...flags, context]).trim();
}

/**
 * Runs a program to its end and returns its output. `options.input` is what it reads. @throws Error
 * when the program is missing or fails, with its last line of output.
 */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): string {
  try {
    return execFileSync(program, args, { encoding: 'utf8', input: '', stdio: 'pipe', maxBuffer: 2 ** 26, ...options });
  } catch (error) {
    const { code, stderr } = error as { code?: string; stderr?: string };
    const name = path.basename(program);
    if (code === 'ENOENT') throw new Error(`${name} is not installed; on Debian: apt-get install ${name}`);
    throw new Error(`${name}: ${lastComplaint(stderr ?? '')}`);
  }
}

function lastComplaint(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !/^\s+at |^Node\.js v/.test(line));
  return lines.find((line) => /Error/.test(line)) ?? lines.at(-1) ?? 'it failed without a word';
}
