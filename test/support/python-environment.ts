/**
 * Virtual Python environments for tests: created once, with packages from the package index, and
 * kept in the user's cache folder.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { cacheFolder } from '../../apps/dev/servers/cache-folder.ts';
import { runTool } from './tools.ts';

/**
 * The purpose of an environment, and what pip installs into it: names with their versions, or
 * `--requirement` and a file.
 */
export interface PythonPackages {
  /** Prefix of the folder's name. */
  name: string;
  /** Changes when the installed packages change. */
  version: string;
  install: readonly string[];
  /** A program in the environment's `bin`; without it the environment counts as broken. */
  program: string;
  /** What the user can do when it cannot be created. */
  remedy: string;
}

/**
 * Returns the environment's folder. The first run creates it and reports that (15 to 30 s); later
 * ones find it. One that has lost its files or its Python is recreated.
 *
 * @throws Error with the remedy when it cannot be created.
 */
export async function pythonEnvironment(packages: PythonPackages): Promise<string> {
  const { name, version, remedy } = packages;
  const python = await runTool(['python3', '--version'], { what: 'Python does not run', remedy }).catch(() => 'none');
  const key = createHash('sha256').update(`${python} ${process.arch} ${version}`).digest('hex').slice(0, 16);
  const home = cacheFolder(`${name}-${key}`);
  if (isWhole(home, packages)) return home;

  console.log(`  installing ${name} for Python into ${home}`);
  mkdirSync(cacheFolder(), { recursive: true });
  const building = `${home}-${process.pid}`;
  try {
    await make(building, remedy);
    const pip = [path.join(building, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', '--no-compile'] as const;
    const quietly = ['--disable-pip-version-check', ...packages.install];
    await runTool([...pip, ...quietly], { what: `${name} could not be installed`, remedy });
    publish(building, home, packages);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    throw error;
  }
  return home;
}

/** Both follow links: to the folder, and from it to the Python that created it. */
function isWhole(home: string, { program }: PythonPackages): boolean {
  return existsSync(path.join(home, 'bin', program)) && existsSync(path.join(home, 'bin', 'python'));
}

/**
 * Debian and Ubuntu have Python's venv module in a separate package: root installs it and reports
 * that.
 */
async function make(building: string, remedy: string): Promise<void> {
  const create = () =>
    runTool(['python3', '-m', 'venv', building], { what: 'A virtual environment of Python could not be made', remedy });
  try {
    await create();
  } catch (error) {
    if (!(await installPackages(['python3', 'python3-venv'], console.log))) throw error;
    await create();
  }
}

/**
 * Names a finished environment, so that an incomplete one is never found. It cannot be moved,
 * because its programs contain their path: the name is a link. Of two created at once the first
 * stays; a link to a missing folder is replaced.
 */
function publish(building: string, home: string, packages: PythonPackages): void {
  if (isWhole(home, packages)) {
    rmSync(building, { recursive: true, force: true });
    return;
  }
  const link = `${building}.link`;
  rmSync(link, { force: true });
  symlinkSync(path.basename(building), link);
  renameSync(link, home);
}
