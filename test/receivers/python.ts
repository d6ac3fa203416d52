/** Makes the Python receiver ready: a virtual environment with the libraries of python/requirements.txt, kept in the user's cache folder. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import type { ReceiverProgram } from './guarantees.ts';
import { cacheFolder, folderOf, runTool } from './tools.ts';

const folder = folderOf('python');
const remedy =
  'install Python 3.10 or newer with its venv module (Debian, Ubuntu: apt-get install python3-venv), and check the network and the Python package index';

/** The first run installs from the package index, said aloud (about 15 s); later ones find it. */
export async function preparePython(): Promise<ReceiverProgram> {
  const requirements = path.join(folder, 'requirements.txt');
  const version = await findVersion();
  const key = createHash('sha256')
    .update(`${version} ${process.arch} ${readFileSync(requirements, 'utf8')}`)
    .digest('hex');
  const home = path.join(cacheFolder(), `receivers-python-${key.slice(0, 16)}`);
  if (!existsSync(path.join(home, 'bin', 'python'))) await install(requirements, home);
  const python = path.join(home, 'bin', 'python');
  return {
    check: [python, path.join(folder, 'check.py')],
    serve: [python, path.join(folder, 'receiver.py')],
  };
}

/** Null when there is no Python yet. */
const findVersion = () => runTool(['python3', '--version'], { what: 'Python does not run', remedy }).catch(() => null);

async function install(requirements: string, home: string): Promise<void> {
  console.log(`  installing the libraries of the Python receiver into ${home}`);
  mkdirSync(path.dirname(home), { recursive: true });
  const building = `${home}-${process.pid}`;
  try {
    await makeEnvironment(building);
    const pip = [
      path.join(building, 'bin', 'python'),
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--no-compile',
    ] as const;
    await runTool([...pip, '--requirement', requirements], {
      what: "The Python receiver's libraries could not be installed",
      remedy,
    });
    publish(building, home);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    throw error;
  }
}

/** Debian and Ubuntu keep Python's venv module in a package of its own: as root it is installed, said aloud. */
async function makeEnvironment(building: string): Promise<void> {
  const make = () =>
    runTool(['python3', '-m', 'venv', building], { what: 'A virtual environment of Python could not be made', remedy });
  try {
    await make();
  } catch (error) {
    if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) throw error;
    console.log('  installing Python for the receivers: apt-get install -y python3 python3-venv');
    const options = { what: 'apt-get could not install Python', remedy, env: { DEBIAN_FRONTEND: 'noninteractive' } };
    const wait = ['-q', '-o', 'DPkg::Lock::Timeout=60'] as const;
    await runTool(['apt-get', ...wait, 'update'], options);
    await runTool(['apt-get', ...wait, 'install', '-y', '--no-install-recommends', 'python3', 'python3-venv'], options);
    await make();
  }
}

/** Names a finished environment, so that nobody finds half of one; of two made at once the first stays. It cannot be moved: it knows its own path. */
function publish(building: string, home: string): void {
  try {
    symlinkSync(path.basename(building), home);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    rmSync(building, { recursive: true, force: true });
  }
}
