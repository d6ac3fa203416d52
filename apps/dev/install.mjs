/**
 * Installs the dependencies when package-lock.json requires it. Runs before every npm script that
 * needs them.
 *
 * Plain JavaScript, and the lock that it imports too: on a fresh clone it runs on the system's Node
 * (20 or newer) with nothing installed.
 *
 * - The dependencies are installed when node_modules contains the lock's hash, or when npm's own
 *   list (node_modules/.package-lock.json) contains every package of the lock. The second check
 *   avoids a reinstall while processes run, just after `npm install`. npm writes that list last and
 *   `npm ci` deletes it first, so an interrupted install has no list.
 * - When two processes install at once, one installs and the others wait.
 * - npm runs on the Node that runs npm, never on node_modules/.bin/node, which it replaces.
 *   Development and optional dependencies are named, because NODE_ENV=production or a user's `omit`
 *   would leave out Node 26 and PostgreSQL. A user's `ignore-scripts` is respected and explained.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { provideOnce } from './state-lock.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const modules = path.join(root, 'node_modules');
const lockFile = path.join(root, 'package-lock.json');
const stampFile = path.join(modules, '.package-lock.sha256');
const cloneLock = path.join(root, '.org-api', 'install.lock');
const oldestNodeMajor = 26;

try {
  await install();
} catch (error) {
  console.error(`\n${error.message}`);
  process.exit(1);
}

async function install() {
  const lock = readLock();
  await provideOnce(cloneLock, {
    isThere: () => isInstalled(lock),
    async provide() {
      rmSync(stampFile, { force: true });
      await runNpmCi();
      noteInstalled(lock);
      return true;
    },
    onWait: () => console.log('Another installation runs in this folder; waiting for it.'),
  });
  requireNode();
}

function readLock() {
  try {
    const text = readFileSync(lockFile, 'utf8');
    const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${text}`).digest('hex');
    return { hash, packages: JSON.parse(text).packages };
  } catch (error) {
    throw new Error(
      `package-lock.json cannot be read (${error.message}): restore it with git checkout package-lock.json.`,
    );
  }
}

function isInstalled(lock) {
  if (!existsSync(path.join(modules, '.package-lock.json'))) return false;
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === lock.hash) return true;
  if (!hasAllPackages(lock.packages)) return false;
  noteInstalled(lock);
  return true;
}

/**
 * Returns whether npm's list of installed packages contains every package of the lock that suits
 * this machine, in the lock's version.
 */
function hasAllPackages(wanted) {
  try {
    const installed = JSON.parse(readFileSync(path.join(modules, '.package-lock.json'), 'utf8')).packages;
    return Object.entries(wanted).every(([name, entry]) => {
      const found = installed[name];
      if (name === '' || entry.link) return true;
      return found ? found.version === entry.version && found.integrity === entry.integrity : mayBeAbsent(entry);
    });
  } catch {
    return false;
  }
}

/**
 * npm leaves out optional packages for other machines, and what only those need. Of two variants
 * for this machine (glibc, musl) it installs one.
 */
function mayBeAbsent({ optional, os, cpu, libc }) {
  const isForHere = os?.includes(process.platform) && cpu?.includes(process.arch) && !libc;
  return Boolean(optional) && !isForHere;
}

function noteInstalled(lock) {
  const draft = `${stampFile}.${process.pid}`;
  writeFileSync(draft, lock.hash);
  renameSync(draft, stampFile);
}

async function runNpmCi() {
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const why = existsSync(modules) ? 'package-lock.json changed or the last install did not finish' : 'first start';
  console.log(`Installing dependencies with npm ci (${why}); this takes a minute or so.`);
  const { npm_execpath: npmCli, npm_node_execpath: npmNode } = process.env;
  const isNpm = npmNode && npmCli && path.basename(npmCli) === 'npm-cli.js' && !npmNode.startsWith(modules);
  const [command, ...before] = isNpm ? [npmNode, npmCli] : ['npm'];
  const outcome = await new Promise((resolve) => {
    const child = spawn(command, [...before, ...args], { cwd: root, stdio: 'inherit', env: npmEnvironment() });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(code === 0 ? null : (signal ?? `exit code ${code}`)));
  });
  if (outcome === null) return;
  throw new Error(
    `npm ci did not finish (${outcome}), so the dependencies are not installed: see npm's message above, check ` +
      'the network and the npm registry, and run this again.',
  );
}

/**
 * Returns the environment for npm. It is the current one, without node_modules/.bin on PATH (npm's
 * scripts would start a Node that is being replaced) and without an empty HOME.
 */
function npmEnvironment() {
  const env = { ...process.env };
  const folders = (env.PATH ?? '').split(path.delimiter);
  env.PATH = folders.filter((folder) => path.resolve(folder) !== path.join(modules, '.bin')).join(path.delimiter);
  if (env.HOME === '') delete env.HOME;
  return env;
}

/**
 * Requires node_modules/.bin/node, which the install script of the npm package `node` downloads and
 * the npm scripts run TypeScript on. Without it, the system's Node must be new enough.
 */
function requireNode() {
  const remedy =
    'allow install scripts (npm config set ignore-scripts false), delete node_modules and run this again, or ' +
    'install Node 26 or newer yourself';
  const own = path.join(modules, '.bin', 'node');
  const isThere = existsSync(own);
  let version;
  try {
    version = isThere ? execFileSync(own, ['--version'], { encoding: 'utf8' }).trim() : process.version;
  } catch (error) {
    throw new Error(`Node from node_modules/.bin/node does not run (${error.message.split('\n')[0]}): ${remedy}.`);
  }
  if (Number.parseInt(version.slice(1), 10) >= oldestNodeMajor) return;
  const problem = isThere
    ? `node_modules/.bin/node is ${version}`
    : `node_modules/.bin/node is missing and this Node is ${version}`;
  throw new Error(`Node ${oldestNodeMajor} or newer is needed, but ${problem}: ${remedy}.`);
}
