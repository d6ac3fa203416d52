import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { copy, listFiles, write } from './files.ts';
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

/**
 * Assembles the folder `/app` of the image: the product's sources, the packages that they need, and
 * the workflow bundle. `modules` is a folder in which `npm ci` has run with this package-lock.json.
 * Returns the absolute paths of the native modules.
 *
 * @throws Error when a package does not have the lock's version, or this system has no native
 * modules.
 */
export function assembleApplication(options: { repository: string; modules: string; app: string }): string[] {
  const { repository, modules, app } = options;
  const target = targets[`${process.platform} ${process.arch}`];
  if (target === undefined) throw new Error(`Temporal has no native module for ${process.platform} ${process.arch}`);
  for (const file of listAppFiles(repository)) copy(path.join(repository, file), path.join(app, file));
  const native = addPackages({ repository, modules, app, target });
  addBundle(options);
  return native;
}

function listAppFiles(repository: string): string[] {
  const below = (folder: string) => listFiles(path.join(repository, folder)).map((file) => `${folder}/${file}`);
  return ['package.json', 'LICENSE', ...below('apps'), ...below('workflows')].filter(isAppFile);
}

function addPackages(options: { repository: string; modules: string; app: string; target: string }): string[] {
  const { repository, modules, app, target } = options;
  const lock = readJson(path.join(repository, 'package-lock.json')) as { packages: Record<string, LockedPackage> };
  const native: string[] = [];
  for (const folder of listRuntimePackages(lock.packages)) {
    const from = path.join(modules, folder);
    const { version } = readJson(path.join(from, 'package.json')) as { version: string };
    if (version !== lock.packages[folder]?.version)
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
function addBundle(options: { repository: string; modules: string; app: string }): void {
  const { repository, modules, app } = options;
  const file = path.resolve(app, 'workflows.bundle.json');
  const place = path.join(modules, '.org-api');
  mkdirSync(place, { recursive: true });
  const sources = mkdtempSync(path.join(place, 'bundling-'));
  try {
    for (const name of listAppFiles(repository)) copy(path.join(repository, name), path.join(sources, name));
    execFileSync(process.execPath, ['apps/worker/write-bundle.ts', file], { cwd: sources, stdio: ['ignore', 2, 2] });
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
  chmodSync(file, 0o644);
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
