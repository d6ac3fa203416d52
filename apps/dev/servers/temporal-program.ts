import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StartupError } from '#runtime/errors.ts';
import { buildWithGo } from './build-with-go.ts';
import { cacheFolder, provideFolder } from './cache-folder.ts';
import type { Report } from './process.ts';
import { programEnvironment } from './program-environment.ts';

/**
 * The version of Temporal's command-line program, which contains the development server. It is
 * found on PATH or in the cache, downloaded and checked against the SHA-256 below, or built by Go
 * (3 minutes on 2 cores, once), which checks the sources against its checksum database. Later
 * versions need modules that are not published.
 */
export const temporalVersion = '1.5.1';

/** The release's archives, by Node's platform and architecture. */
export const temporalArchives: Readonly<Record<string, { name: string; sha256: string }>> = {
  'linux-x64': { name: 'linux_amd64', sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d' },
  'linux-arm64': { name: 'linux_arm64', sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5' },
  'darwin-x64': { name: 'darwin_amd64', sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9' },
  'darwin-arm64': { name: 'darwin_arm64', sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415' },
};
const releaseUrl = `https://github.com/temporalio/cli/releases/download/v${temporalVersion}`;
const sources = { package: 'github.com/temporalio/cli/cmd/temporal', version: `v${temporalVersion}` };

/**
 * Returns the program's path.
 *
 * @throws StartupError when there is none and it cannot be built.
 */
export async function getTemporalProgram(report: Report): Promise<string> {
  if (doesRun('temporal')) return 'temporal';
  const folder = cacheFolder(`temporal-${temporalVersion}`);
  const program = path.join(folder, 'temporal');
  const fill = async (draft: string) =>
    (await download(draft, report)) || (await buildWithGo('temporal', sources, draft, report));
  const isProvided = await provideFolder(folder, fill, {
    isThere: () => doesRun(program),
    onWait: () => report('Temporal: another process installs it; waiting'),
  });
  if (isProvided) return program;
  throw new StartupError(
    `Temporal's server is not available: neither its download nor Go can be reached. Install the temporal command ` +
      `(version ${temporalVersion} or newer), or set TEMPORAL_ADDRESS.`,
  );
}

const doesRun = (program: string) => spawnSync(program, ['--version'], { env: programEnvironment() }).status === 0;

async function download(folder: string, report: Report): Promise<boolean> {
  const archive = temporalArchives[`${process.platform}-${process.arch}`];
  if (archive === undefined) return false;
  report(`Temporal: downloading version ${temporalVersion} (80 MB, once)`);
  const url = `${releaseUrl}/temporal_cli_${temporalVersion}_${archive.name}.tar.gz`;
  const bytes = await fetchVerified(url, archive.sha256, report);
  if (bytes === null) return false;
  const file = path.join(folder, 'archive.tar.gz');
  writeFileSync(file, bytes);
  spawnSync('tar', ['-xzf', file, '-C', folder, 'temporal'], { env: programEnvironment() });
  rmSync(file);
  return doesRun(path.join(folder, 'temporal'));
}

/**
 * Downloads a file. Returns its bytes, or null, which it reports, when the download fails or the
 * SHA-256 differs.
 */
export async function fetchVerified(url: string, sha256: string, report: Report): Promise<Buffer | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(180_000) });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    if (createHash('sha256').update(bytes).digest('hex') === sha256) return bytes;
    throw new Error('its SHA-256 is not the expected one');
  } catch (error) {
    const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
    report(`Temporal: the download cannot be used (${cause?.code ?? message})`);
    return null;
  }
}
