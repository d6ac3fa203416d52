/**
 * Installs the dependencies when package-lock.json requires it. Runs before every npm script that
 * needs them, in plain JavaScript: on a fresh clone it has the system's Node (20 or newer) and no
 * package.
 *
 * - npm writes its list of installed packages last, and `npm ci` deletes it first, so an interrupted
 *   install has no list. One that contains every package of the lock is complete.
 * - Of two processes one installs and the other waits.
 * - Development and optional dependencies are named, because NODE_ENV=production or a user's `omit`
 *   would leave out Node 26 and PostgreSQL. No package runs a script of its own (.npmrc).
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { provideOnce } from './state-lock.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const modules = path.join(root, 'node_modules');
const oldestNodeMajor = 26;

try {
  const onWait = () => console.log('Another installation runs in this folder; waiting for it.');
  const lock = path.join(root, '.org-api', 'install.lock');
  await provideOnce(lock, { isThere: isInstalled, provide: runNpmCi, onWait });
  requireNode();
} catch (error) {
  console.error(`\n${error.message}`);
  process.exit(1);
}

/** Returns whether npm's list has every package of the lock that suits this machine, in its version. */
function isInstalled() {
  const installed = readPackages('node_modules/.package-lock.json');
  const wanted = Object.entries(readPackages('package-lock.json'));
  const isThere = ([name, entry]) => {
    const found = installed[name];
    if (name === '' || entry.link) return true;
    return found ? found.version === entry.version && found.integrity === entry.integrity : mayBeAbsent(entry);
  };
  return wanted.length > 0 && wanted.every(isThere); // npm says what is wrong with a lock that cannot be read
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(path.join(root, file), 'utf8')).packages;
  } catch {
    return {};
  }
}

/**
 * npm leaves out optional packages for other machines, and what only those need. Of two variants
 * for this machine (glibc, musl) it installs one.
 */
function mayBeAbsent({ optional, os, cpu, libc }) {
  const isForHere = [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch) && !libc;
  return Boolean(optional) && !isForHere;
}

async function runNpmCi() {
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const why = existsSync(modules) ? 'package-lock.json changed or the last install did not finish' : 'first start';
  console.log(`Installing dependencies with npm ci (${why}); this takes a minute or so.`);
  // Not the Node of node_modules, which npm replaces.
  const isElsewhere = (folder) => path.resolve(folder) !== path.join(modules, '.bin');
  const PATH = (process.env.PATH ?? '').split(path.delimiter).filter(isElsewhere).join(path.delimiter);
  const failure = await new Promise((resolve) => {
    const child = spawn('npm', args, { cwd: root, stdio: 'inherit', env: { ...process.env, PATH } });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(code === 0 ? null : (signal ?? `exit code ${code}`)));
  });
  if (failure === null) return true;
  throw new Error(
    `npm ci did not finish (${failure}), so the dependencies are not installed: see npm's message above, check ` +
      'the network and the npm registry, and run this again.',
  );
}

/**
 * Requires node_modules/.bin/node, which comes in the npm package of Node for this system and which
 * the npm scripts run TypeScript on. Without it, the system's Node must be new enough.
 */
function requireNode() {
  const own = path.join(modules, '.bin', 'node');
  const isMissing = !existsSync(own);
  const { stdout, error } = spawnSync(isMissing ? process.execPath : own, ['--version'], { encoding: 'utf8' });
  if (Number.parseInt(stdout?.slice(1), 10) >= oldestNodeMajor) return;
  const state = isMissing ? 'is missing and this Node is' : error ? 'does not run:' : 'is';
  const found = error?.message ?? stdout.trim();
  throw new Error(
    `Node ${oldestNodeMajor} or newer is needed, but node_modules/.bin/node ${state} ${found}: delete node_modules ` +
      'and run this again, or install one yourself if package.json lists none for this system.',
  );
}
