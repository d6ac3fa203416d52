import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { programEnvironment } from '../../apps/dev/servers/program-environment.ts';
import { copy, listFiles, readJson, write } from './files.ts';
import {
  isAppFile,
  isPackageFile,
  type LockedPackage,
  listRuntimePackages,
  placeholderCode,
  placeholders,
} from './packages.ts';

/** The folder of this machine's native modules in Temporal's packages. */
const targets: Record<string, string> = {
  'linux x64': 'x86_64-unknown-linux-gnu',
  'linux arm64': 'aarch64-unknown-linux-gnu',
  'darwin x64': 'x86_64-apple-darwin',
  'darwin arm64': 'aarch64-apple-darwin',
};

interface ApplicationFolders {
  repository: string;
  /** Where `npm ci` has run with this package-lock.json. */
  modules: string;
  app: string;
  /** Node's platform and architecture, for example `linux x64`. */
  system: string;
}

/**
 * Assembles the folder `/app` of the image: the product's sources, the packages that they need, and
 * the workflow bundle. Returns the absolute paths of the native modules.
 *
 * @throws Error when a package does not have the lock's version, or this system has no native
 * modules.
 */
export function assembleApplication(folders: ApplicationFolders): string[] {
  const native = addPackages(folders);
  copyAppFiles(folders.repository, folders.app);
  addBundle(folders);
  return native;
}

function copyAppFiles(repository: string, to: string): void {
  const below = (folder: string) => listFiles(path.join(repository, folder)).map((file) => `${folder}/${file}`);
  for (const file of ['package.json', 'LICENSE', ...below('apps'), ...below('workflows')].filter(isAppFile))
    copy(path.join(repository, file), path.join(to, file));
}

function addPackages({ repository, modules, app, system }: ApplicationFolders): string[] {
  const target = targets[system];
  if (target === undefined) throw new Error(`Temporal has no native module for ${system}`);
  const { packages } = readJson<{ packages: Record<string, LockedPackage> }>(repository, 'package-lock.json');
  const native: string[] = [];
  for (const folder of listRuntimePackages(packages)) {
    const from = path.join(modules, folder);
    const { version } = readJson<{ version: string }>(from, 'package.json');
    if (version !== packages[folder]?.version)
      throw new Error(`${folder} is ${version}, which is not what package-lock.json says: run npm ci there again`);
    const files = listFiles(from, (below) => path.basename(below) !== 'node_modules');
    for (const file of files.filter((name) => isPackageFile(name, target))) {
      const to = path.join(app, folder, file);
      copy(path.join(from, file), to);
      if (file.endsWith('.node')) native.push(to);
    }
  }
  for (const name of placeholders) {
    const folder = path.join(app, 'node_modules', name);
    write(path.join(folder, 'package.json'), `${JSON.stringify({ name, version: '0.0.0', main: 'index.js' })}\n`);
    write(path.join(folder, 'index.js'), placeholderCode);
  }
  return native;
}

/**
 * Built from a copy of the sources in a separate folder beside the modules, so that concurrent
 * builds do not collide; git ignores it.
 */
function addBundle({ repository, modules, app }: ApplicationFolders): void {
  const file = path.resolve(app, 'workflows.bundle.json');
  const folder = path.join(modules, '.org-api');
  mkdirSync(folder, { recursive: true });
  const sources = mkdtempSync(path.join(folder, 'bundling-'));
  try {
    copyAppFiles(repository, sources);
    execFileSync(process.execPath, ['apps/worker/write-bundle.ts', file], {
      cwd: sources,
      stdio: ['ignore', 2, 2],
      env: programEnvironment(),
    });
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
  chmodSync(file, 0o644);
}
