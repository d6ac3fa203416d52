import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { Build } from './build-id.ts';
import { imageConfig } from './image-config.ts';

/** Returns a function that runs buildah with a store of its own, which needs no mounts. */
export function openStore(work: string): (...args: string[]) => string {
  const store = ['--storage-driver', 'vfs', '--root', path.join(work, 'store'), '--runroot', path.join(work, 'run')];
  return (...args) => run('buildah', [...store, ...args]).trim();
}

/** Returns the flags of `buildah config` for an image. */
export function configFlags(build: Build): string[] {
  const { env, labels, workingDirectory, user, entrypoint, command } = imageConfig(build);
  const flags = { workingdir: workingDirectory, user, entrypoint: JSON.stringify(entrypoint), cmd: command.join(' ') };
  return [
    ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ...Object.entries(labels).flatMap(([name, value]) => ['--label', `org.opencontainers.image.${name}=${value}`]),
    ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
  ];
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
