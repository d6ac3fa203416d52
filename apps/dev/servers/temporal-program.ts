import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { provideOnce } from '../state-lock.mjs';
import { cacheFolder } from './cache-folder.ts';
import { startTracked } from './children.ts';
import { type Report, ServerUnavailableError } from './process.ts';
import { downloadEnvironment, programEnvironment } from './program-environment.ts';

/**
 * The version of Temporal's command-line program, which contains the development server. It is
 * found on PATH or in the cache, downloaded and checked against the SHA-256 below, or built by Go
 * (3 minutes on 2 cores, once). Later versions need modules that are not published.
 */
export const temporalVersion = '1.5.1';

/**
 * The release's archives, by Node's platform and architecture. Elsewhere Go builds the program and
 * checks the sources against its checksum database.
 */
export const temporalArchives: Readonly<Record<string, { name: string; sha256: string }>> = {
  'linux-x64': { name: 'linux_amd64', sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d' },
  'linux-arm64': { name: 'linux_arm64', sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5' },
  'darwin-x64': { name: 'darwin_amd64', sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9' },
  'darwin-arm64': { name: 'darwin_arm64', sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415' },
};
const releaseUrl = `https://github.com/temporalio/cli/releases/download/v${temporalVersion}`;

/**
 * Returns the program's path.
 *
 * @throws ServerUnavailableError when there is none and it cannot be built.
 */
export async function getTemporalProgram(report: Report): Promise<string> {
  if (versionOf('temporal') !== null) return 'temporal';
  const cached = cacheFolder(`temporal-${temporalVersion}`, 'temporal');
  const isProvided = await provideOnce(`${path.dirname(cached)}.lock`, {
    isThere: () => existsSync(cached) && versionOf(cached) !== null,
    async provide() {
      mkdirSync(path.dirname(cached), { recursive: true });
      return (await download(cached, report)) || (await build(cached, report));
    },
    onWait: () => report('Temporal: another process installs it; waiting'),
  });
  if (isProvided) return cached;
  throw new ServerUnavailableError(
    `Temporal's server is not available: neither its download nor Go can be reached. Install the temporal command ` +
      `(version ${temporalVersion} or newer), or set TEMPORAL_ADDRESS.`,
  );
}

/** Returns the version, for example `1.5.1`, or null when the program does not run. */
export function versionOf(program: string): string | null {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', env: programEnvironment() });
  return /version v?(\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1] ?? null;
}

async function download(target: string, report: Report): Promise<boolean> {
  const archive = temporalArchives[`${platform()}-${arch()}`];
  if (archive === undefined) return false;
  report(`Temporal: downloading version ${temporalVersion} (80 MB, once)`);
  const bytes = await fetchVerified(
    `${releaseUrl}/temporal_cli_${temporalVersion}_${archive.name}.tar.gz`,
    archive.sha256,
    report,
  );
  return bytes !== null && unpack(bytes, target);
}

/** Downloads a file. Returns its bytes, or null when the download fails or the SHA-256 differs. */
export async function fetchVerified(url: string, sha256: string, report: Report): Promise<Buffer | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(180_000) });
    if (!answer.ok) return null;
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (createHash('sha256').update(bytes).digest('hex') === sha256) return bytes;
    report('Temporal: the SHA-256 of the download is not the expected one; it is not used');
    return null;
  } catch {
    return null;
  }
}

function unpack(bytes: Buffer, target: string): boolean {
  const archive = `${target}.tar.gz`;
  writeFileSync(archive, bytes);
  const unpacked = spawnSync('tar', ['-xzf', archive, '-C', path.dirname(target), 'temporal'], {
    env: programEnvironment(),
  });
  rmSync(archive, { force: true });
  if (unpacked.status !== 0) return false;
  chmodSync(target, 0o755);
  return versionOf(target) !== null;
}

async function build(target: string, report: Report): Promise<boolean> {
  if (spawnSync('go', ['version'], { env: programEnvironment() }).status !== 0) return false;
  report(`Temporal: the download failed; building version ${temporalVersion} with Go (about 3 minutes, once)`);
  const startedAt = performance.now();
  let modules = 0;
  let complaint = '';
  const progress = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    report(`Temporal: still building with Go (${seconds} s, ${modules} modules downloaded)`);
  }, 10_000);
  const folder = `${target}.building-${process.pid}`;
  const child = startTracked(() =>
    spawn('go', ['install', `github.com/temporalio/cli/cmd/temporal@v${temporalVersion}`], {
      env: { ...downloadEnvironment(), GOBIN: folder },
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  );
  // Go writes a line for each module, and what is wrong.
  if (child.stderr !== null)
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.startsWith('go: downloading ')) modules += 1;
      else complaint = line;
    });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', resolve);
  });
  clearInterval(progress);
  if (code === 0) renameSync(path.join(folder, 'temporal'), target);
  else if (complaint !== '') report(`Temporal: Go could not build it (${complaint})`);
  rmSync(folder, { recursive: true, force: true });
  return code === 0;
}
