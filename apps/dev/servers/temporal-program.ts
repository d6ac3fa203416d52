import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isBuilding, takeBuildTurn } from './build-turn.ts';
import { cacheFolder } from './cache-folder.ts';
import { ServerUnavailableError } from './process.ts';

/**
 * Finds Temporal's command line program, which carries its development server, or gets it: on PATH, in our cache, from Temporal's own download, or built
 * by Go (3 minutes on 2 cores, once). Design section 2. Later versions than this need modules that are not published.
 */
export const temporalVersion = '1.5.1';

type Report = (line: string) => void;

/** The program's path. @throws ServerUnavailableError with the remedy when there is none and none can be had. */
export async function getTemporalProgram(report: Report): Promise<string> {
  if (versionOf('temporal') !== null) return 'temporal';
  const cached = cacheFolder(`temporal-${temporalVersion}`, 'temporal');
  if (await inTurn(cached, report)) return cached;
  throw new ServerUnavailableError(
    `Temporal's server cannot be had: neither its download nor Go is within reach. Install the temporal command (version ${temporalVersion} or newer), or set TEMPORAL_ADDRESS.`,
  );
}

/** Whether the program is in our cache: found there, brought there by us, or by another process that was waited for. */
async function inTurn(cached: string, report: Report): Promise<boolean> {
  const isThere = () => existsSync(cached) && versionOf(cached) !== null;
  const lock = `${path.dirname(cached)}.lock`;
  for (let waits = 0; !isThere(); waits += 1) {
    const release = takeBuildTurn(lock);
    if (release !== null) {
      mkdirSync(path.dirname(cached), { recursive: true });
      try {
        return isThere() || (await download(cached, report)) || (await build(cached, report));
      } finally {
        release();
      }
    }
    if (waits === 0) report('Temporal: another process is getting it; waiting for that');
    while (isBuilding(lock)) await wait(500);
  }
  return true;
}

/** As `1.5.1`, or null when the program does not run. */
export function versionOf(program: string): string | null {
  return (
    /version v?(\d+\.\d+\.\d+)/.exec(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? null
  );
}

async function download(target: string, report: Report): Promise<boolean> {
  const names: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };
  const url = `https://temporal.download/cli/archive/v${temporalVersion}?platform=${platform()}&arch=${names[arch()] ?? arch()}`;
  report(`Temporal: downloading version ${temporalVersion} (80 MB, once)`);
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(180_000) });
    if (!answer.ok) return false;
    const archive = `${target}.tar.gz`;
    writeFileSync(archive, Buffer.from(await answer.arrayBuffer()));
    const unpacked = spawnSync('tar', ['-xzf', archive, '-C', path.dirname(target), 'temporal']);
    rmSync(archive, { force: true });
    if (unpacked.status !== 0) return false;
    chmodSync(target, 0o755);
    return versionOf(target) !== null;
  } catch {
    return false;
  }
}

async function build(target: string, report: Report): Promise<boolean> {
  if (spawnSync('go', ['version']).status !== 0) return false;
  report(`Temporal: the download is out of reach; building version ${temporalVersion} with Go (about 3 minutes, once)`);
  const startedAt = performance.now();
  const progress = setInterval(
    () => report(`Temporal: still building (${Math.round((performance.now() - startedAt) / 1000)} s)`),
    30_000,
  );
  const folder = `${target}.building-${process.pid}`;
  const child = spawn('go', ['install', `github.com/temporalio/cli/cmd/temporal@v${temporalVersion}`], {
    env: { ...process.env, GOBIN: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', resolve);
  });
  clearInterval(progress);
  if (code === 0) renameSync(path.join(folder, 'temporal'), target);
  rmSync(folder, { recursive: true, force: true });
  return code === 0;
}
