/** Schemathesis, which calls the API with whatever its OpenAPI document allows and forbids. A Python program, kept in a virtual environment of its own. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const version = '4.32.5';
const remedy = `install Python 3.10 or newer with its venv module, or run \`pip install schemathesis==${version}\` yourself and set SCHEMATHESIS_PATH to the program`;

/**
 * The path of schemathesis. `SCHEMATHESIS_PATH` wins; else the copy in the user's cache folder, which the first run installs from PyPI, said aloud (about 30 s).
 *
 * @throws Error with the remedy when it cannot be installed.
 */
export async function getSchemathesis(): Promise<string> {
  if (process.env.SCHEMATHESIS_PATH) return process.env.SCHEMATHESIS_PATH;
  const cache = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'org-api');
  const home = path.join(cache, `schemathesis-${version}`);
  const program = path.join(home, 'bin', 'schemathesis');
  if (existsSync(program)) return program;

  console.log(`  installing schemathesis ${version} from PyPI into ${home}`);
  mkdirSync(cache, { recursive: true });
  const building = `${home}-${process.pid}`;
  try {
    await makeEnvironment(building);
    await run(path.join(building, 'bin', 'pip'), ['install', '--quiet', `schemathesis==${version}`]);
    publish(building, home);
  } catch (cause) {
    rmSync(building, { recursive: true, force: true });
    const reason = (cause as { stderr?: string }).stderr?.trim().split('\n').at(-1) ?? (cause as Error).message;
    throw new Error(`schemathesis could not be installed (${reason}): ${remedy}.`, { cause });
  }
  return program;
}

/** Debian and Ubuntu keep Python's venv module in a package of its own: as root it is installed, said aloud. */
async function makeEnvironment(folder: string): Promise<void> {
  const make = () => run('python3', ['-m', 'venv', folder]);
  try {
    await make();
  } catch (error) {
    if (process.getuid?.() !== 0 || !isDebian()) throw error;
    console.log('  installing Python for schemathesis: apt-get install -y python3-venv');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '-q'], { env });
    await run('apt-get', ['install', '-y', '-q', 'python3', 'python3-venv'], { env });
    await make();
  }
}

/** Names a finished environment, so that nobody finds half of one; of two made at once the first stays. It cannot be moved: its programs know their own path. */
function publish(folder: string, name: string): void {
  try {
    symlinkSync(path.basename(folder), name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    rmSync(folder, { recursive: true, force: true });
  }
}

function isDebian(): boolean {
  return (
    existsSync('/etc/os-release') && /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync('/etc/os-release', 'utf8'))
  );
}
