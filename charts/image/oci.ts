import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cacheFolder } from '../../apps/dev/servers/cache-folder.ts';
import type { Build } from './build-id.ts';
import { configFlags, openStore, run } from './buildah.ts';
import { listFiles, readJson } from './files.ts';
import { getSysroot } from './foreign.ts';
import { getModules } from './modules.ts';
import { placeholders } from './packages.ts';

const architectures = ['amd64', 'arm64'] as const;

export interface DebianPackage {
  name: string;
  version: string;
  architecture: string;
}

export interface NpmPackage {
  name: string;
  version: string;
}

/** An image for several architectures, as an OCI layout, and the packages that its file systems contain. */
export interface OciImage {
  /** Digest of the index of both images. */
  digest: string;
  debian: DebianPackage[];
  npm: NpmPackage[];
}

/**
 * Builds the image for both architectures on amd64 and writes them as one OCI layout into `folder`.
 * Nothing for arm64 is run: its programs are read.
 */
export async function buildOciImage(options: {
  repository: string;
  build: Build;
  folder: string;
  report: (line: string) => void;
}): Promise<OciImage> {
  const { repository, build, folder, report } = options;
  if (process.arch !== 'x64') throw new Error('the image for both architectures is built on amd64');
  const modules = await getModules(repository, report);
  const sysroot = getSysroot(cacheFolder(), process.versions.node, report);
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-release-'));
  try {
    const buildah = openStore(work);
    const list = 'localhost/org-api:all';
    buildah('manifest', 'create', list);
    const debian: DebianPackage[] = [];
    const npm: NpmPackage[] = [];
    for (const architecture of architectures) {
      report(`assembling and packing the image for ${architecture}`);
      const rootfs = path.join(work, architecture);
      const from = architecture === 'amd64' ? [] : ['--sysroot', sysroot];
      const program = path.join(repository, 'charts/image/rootfs.ts');
      run(process.execPath, [
        program,
        '--modules',
        modules,
        '--epoch',
        `${build.epochSeconds}`,
        '--out',
        rootfs,
        ...from,
      ]);
      debian.push(...listDebianPackages(rootfs));
      npm.push(...listNpmPackages(rootfs));
      const container = buildah('from', 'scratch');
      buildah('copy', '--quiet', '--chown', '0:0', container, rootfs, '/');
      buildah('config', ...configFlags(build), '--os', 'linux', '--arch', architecture, container);
      const image = `localhost/org-api:${architecture}`;
      buildah('commit', '--quiet', '--rm', '--format', 'oci', '--timestamp', `${build.epochSeconds}`, container, image);
      buildah('manifest', 'add', list, image);
      rmSync(rootfs, { recursive: true });
    }
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(path.dirname(folder), { recursive: true });
    buildah('manifest', 'push', '--quiet', '--all', list, `oci:${folder}`);
    return { digest: readDigest(folder), debian, npm };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function readDigest(folder: string): string {
  const index = JSON.parse(readFileSync(path.join(folder, 'index.json'), 'utf8')) as {
    manifests: { digest: string }[];
  };
  return index.manifests[0]?.digest ?? '';
}

/** Returns the Debian packages that an image's root file system names, as scanners read them. */
function listDebianPackages(rootfs: string): DebianPackage[] {
  const folder = path.join(rootfs, 'var/lib/dpkg/status.d');
  return listFiles(folder).map((name) => {
    const text = readFileSync(path.join(folder, name), 'utf8');
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, 'm').exec(text)?.[1] ?? '';
    return { name: field('Package'), version: field('Version'), architecture: field('Architecture') };
  });
}

/** Returns the npm packages of an image's root file system, without the placeholders of packages that it lacks. */
export function listNpmPackages(rootfs: string): NpmPackage[] {
  return globSync('app/**/node_modules/{*,@*/*}/package.json', { cwd: rootfs })
    .map((file) => readJson<NpmPackage>(rootfs, file))
    .filter(({ name }) => !placeholders.some((one) => one === name))
    .map(({ name, version }) => ({ name, version }));
}
