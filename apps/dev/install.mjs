/**
 * Installs the dependencies when package-lock.json asks for it; runs before every npm script that
 * needs them. Design section 2.
 *
 * Plain JavaScript without imports of this project: on a fresh clone it runs on the system's Node (20 or
 * newer) with nothing installed.
 *
 * Decisions (2026-11-20):
 * - Installed means: the lock's hash is noted in node_modules, or npm's own list there
 *   (node_modules/.package-lock.json) has all that the lock has. The second saves a developer who just ran
 *   `npm install` a full reinstall under the feet of running processes. npm writes that list last
 *   and `npm ci` deletes it first, so an interrupted install counts as none.
 * - Two at once: one installs, the others wait. The lock file's time is renewed every second; one
 *   that is 15 s old has lost its owner.
 * - npm runs on the Node that runs npm, never on node_modules/.bin/node, which it is about to
 *   replace. Development and optional dependencies are named, because NODE_ENV=production or a
 *   user's `omit` would leave out Node 26 and PostgreSQL. A user's `ignore-scripts` is respected
 *   and explained.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const modules = path.join(root, 'node_modules');
const lockFile = path.join(root, 'package-lock.json');
const stampFile = path.join(modules, '.package-lock.sha256');
const turnFile = path.join(root, '.org-api', 'install.lock');
const oldestNodeMajor = 26;
const turnIsLostAfterMs = 15_000;

try {
  await install();
} catch (error) {
  console.error(`\n${error.message}`);
  process.exit(1);
}

async function install() {
  const lock = readLock();
  if (!isInstalled(lock)) {
    await inTurn(async () => {
      if (isInstalled(lock)) return; // another start installed while we waited
      rmSync(stampFile, { force: true });
      await runNpmCi();
      noteInstalled(lock);
    });
  }
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
 * Whether npm's list of what it installed has every package of the lock that this machine can have,
 * in the lock's version.
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
 * npm leaves out optional packages for other machines, and what only those need. Of two for this
 * one (glibc, musl) it has one.
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

/** Runs `work` while no other install of this clone does. */
async function inTurn(work) {
  mkdirSync(path.dirname(turnFile), { recursive: true });
  for (let waits = 0; !takeTurn(); waits += 1) {
    if (waits === 0) console.log('Another install is under way in this folder: waiting for it.');
    await wait(500);
  }
  const renewal = setInterval(() => touch(turnFile), 1_000);
  const release = () => {
    clearInterval(renewal);
    rmSync(turnFile, { force: true });
  };
  process.once('exit', release); // Ctrl-C ends npm, and that ends us by way of its exit code
  try {
    await work();
  } finally {
    release();
  }
}

function takeTurn() {
  try {
    writeFileSync(turnFile, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST')
      throw new Error(`${turnFile} cannot be written (${error.message}): make this folder writable.`);
  }
  if (isLost(turnFile)) moveAway(turnFile);
  return false;
}

function isLost(file) {
  const renewedMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  return renewedMs !== undefined && Date.now() - renewedMs > turnIsLostAfterMs;
}

/**
 * Of two that see a lost turn, the slower may have moved the faster one's new turn: that goes back.
 */
function moveAway(file) {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
    if (isLost(aside)) rmSync(aside);
    else renameSync(aside, file);
  } catch {
    // Another start moved it first.
  }
}

function touch(file) {
  try {
    utimesSync(file, new Date(), new Date());
  } catch {
    // Someone deleted .org-api meanwhile; the install itself is not hurt.
  }
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
 * Ours, without node_modules/.bin on PATH (npm's scripts would start a Node that is being
 * replaced), and without a blank HOME.
 */
function npmEnvironment() {
  const env = { ...process.env };
  const folders = (env.PATH ?? '').split(path.delimiter);
  env.PATH = folders.filter((folder) => path.resolve(folder) !== path.join(modules, '.bin')).join(path.delimiter);
  if (env.HOME === '') delete env.HOME;
  return env;
}

/**
 * The npm scripts run TypeScript on node_modules/.bin/node, which the install script of npm package
 * `node` fetches; without it, on whatever runs this.
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
