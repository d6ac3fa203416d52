/** The real browser that page tests use: an installed Chromium or Chrome, or Debian's and Ubuntu's package. */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { takeBuildTurn, waitForBuild } from '../../apps/dev/servers/build-turn.ts';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const usualPlaces = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** No sandbox, as tests may run as root in a container; and nothing of the browser's own may reach the network. */
const browserArguments = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * The path of a Chromium. `CHROMIUM_PATH` wins, then PATH. As root on Debian or Ubuntu it is installed when there is none, said aloud; that takes a minute.
 *
 * @throws Error with the remedy when there is none and none can be installed.
 */
export function findChromium(): string {
  const found = process.env.CHROMIUM_PATH || onThisMachine();
  if (found) return found;
  if (process.getuid?.() === 0 && isDebian()) install();
  const installed = onThisMachine();
  if (installed) return installed;
  throw new Error(
    'The page tests need a Chromium and this machine has none: install chromium or Chrome, or set CHROMIUM_PATH to one.',
  );
}

/** One process at a time: apt-get ends at once when another one has its lock. That it failed is said by whoever looks for the browser then, with the remedy. */
function install(): void {
  const lock = path.join(tmpdir(), 'org-api-chromium.lock');
  const release = takeBuildTurn(lock);
  if (release === null) {
    waitForBuild(lock);
    return;
  }
  console.log('  installing chromium for the page tests: apt-get install -y chromium');
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const;
  try {
    execFileSync('apt-get', ['update', '-q'], options);
    execFileSync('apt-get', ['install', '-y', '-q', '--no-install-recommends', 'chromium'], options);
  } catch {
    // Said by the caller.
  } finally {
    release();
  }
}

/** Starts it without a window. The caller closes it. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: browserArguments });
}

function onThisMachine(): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return [...folders.flatMap((folder) => names.map((name) => path.join(folder, name))), ...usualPlaces].find(
    isExecutable,
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync('/etc/os-release', 'utf8'));
  } catch {
    return false;
  }
}
