/**
 * Virtual Python environments for tests: created once, with packages from the package index, and
 * kept in the user's cache folder.
 */
import { createHash } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { cacheFolder } from '../../apps/dev/servers/cache-folder.ts';
import { provideOnce } from '../../apps/dev/state-lock.mjs';
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
  const isThere = () => isWhole(home, packages);
  const provide = async () => {
    console.log(`  installing ${name} for Python into ${home}`);
    rmSync(home, { recursive: true, force: true });
    await make(home, remedy);
    const pip = [path.join(home, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', '--no-compile'] as const;
    const quietly = ['--disable-pip-version-check', ...packages.install];
    await runTool([...pip, ...quietly], { what: `${name} could not be installed`, remedy });
    return true;
  };
  await provideOnce(`${home}.lock`, { isThere, provide });
  return home;
}

/** pip installs the program last, and the link to a Python that was removed leads nowhere. */
function isWhole(home: string, { program }: PythonPackages): boolean {
  return existsSync(path.join(home, 'bin', program)) && existsSync(path.join(home, 'bin', 'python'));
}

/**
 * Debian and Ubuntu have Python's venv module in a separate package: root installs it and reports
 * that.
 */
async function make(home: string, remedy: string): Promise<void> {
  const create = () =>
    runTool(['python3', '-m', 'venv', home], { what: 'A virtual environment of Python could not be made', remedy });
  try {
    await create();
  } catch (error) {
    if (!(await installPackages(['python3', 'python3-venv'], console.log))) throw error;
    await create();
  }
}
