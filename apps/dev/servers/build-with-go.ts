import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type Report, secondsSince, startTracked } from './process.ts';
import { downloadEnvironment, programEnvironment } from './program-environment.ts';

/** A program that Go builds from a package of a module's version. */
export interface GoProgram {
  package: string;
  version: string;
  flags?: readonly string[];
  /** The module, for one that replaces others: `go install` rejects it, so it is built inside it. */
  inModule?: string;
}

/**
 * Returns the folder of a Go module's files, which Go downloads if needed.
 *
 * @throws Error with Go's message when it cannot.
 */
export function getModule(module: string): string {
  const { status, stdout, stderr } = spawnSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`Go could not download ${module}: ${stderr || stdout}`);
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/**
 * Builds a program into `folder`, without C, so that it also runs in an image that has nothing else.
 * Reports every ten seconds how far it is. Returns false, and reports why, when Go is missing or
 * fails.
 */
export async function buildWithGo(name: string, program: GoProgram, folder: string, report: Report): Promise<boolean> {
  const { package: source, version, flags = [], inModule } = program;
  if (spawnSync('go', ['version'], { env: programEnvironment() }).status !== 0) return false;
  const startedAt = performance.now();
  report(`${name}: building ${source}@${version} with Go (one to six minutes, once)`);
  let modules = 0;
  let complaint = 'it says nothing';
  const progress = setInterval(() => {
    report(`${name}: still building with Go (${secondsSince(startedAt)}, ${modules} modules downloaded)`);
  }, 10_000);
  const [cwd, ...args] =
    inModule === undefined
      ? [undefined, 'install', ...flags, `${source}@${version}`]
      : [
          getModule(`${inModule}@${version}`),
          'build',
          '-mod=readonly',
          ...flags,
          '-o',
          path.join(folder, name),
          source,
        ];
  // A module's own workspace names folders that its archive does not contain.
  const env = { ...downloadEnvironment(), CGO_ENABLED: '0', GOWORK: 'off', GOBIN: folder };
  const { exited } = await startTracked(() => {
    const child = spawn('go', args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
    // Go writes a line for each module, and what is wrong.
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.startsWith('go: downloading ')) modules += 1;
      else complaint = line;
    });
    return child;
  });
  const isBuilt = (await exited.finally(() => clearInterval(progress))) === 'exit code 0';
  if (!isBuilt) report(`${name}: Go could not build it: ${complaint}`);
  return isBuilt;
}
