/**
 * The real browser of page tests: an installed Chromium or Chrome, or the package of Debian and
 * Ubuntu.
 */
import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { provideOnce } from '../../apps/dev/state-lock.mjs';

/**
 * Debian's Chromium without a window, built from the same sources: pages take half the time,
 * because it renders no window.
 */
const headlessShell = 'chromium-headless-shell';
const names = [headlessShell, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const usualPaths = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/**
 * No sandbox, because tests may run as root in a container; and no requests of the browser itself.
 * What changes is drawn whole: beside what was drawn before, rounded corners get other pixels.
 */
const browserArguments = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-partial-raster',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Finds a Chromium: `CHROMIUM_PATH`, then PATH. Root on Debian installs it when there is none,
 * which is reported and takes a minute.
 *
 * @throws Error with the remedy when there is none and none can be installed.
 */
async function findChromium(): Promise<string> {
  if (process.env.CHROMIUM_PATH) return process.env.CHROMIUM_PATH;
  if (!onThisMachine()) await installHeadlessShell();
  const found = onThisMachine();
  if (found) return found;
  throw new Error(
    'The page tests need a Chromium and this machine has none: install chromium or Chrome, or set ' +
      'CHROMIUM_PATH to one.',
  );
}

/**
 * Installs Debian's headless shell, as root on Debian when it is missing. One process does it, and
 * the others find it. A failure is reported by the test that needs the browser, with the remedy.
 */
export async function installHeadlessShell(): Promise<void> {
  await provideOnce(path.join(tmpdir(), 'org-api-chromium.lock'), {
    isThere: () => onPath(headlessShell) !== undefined,
    provide: () => installPackages([headlessShell], console.log),
  });
}

/** Starts it without a window. The caller closes it. */
export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await findChromium(), args: browserArguments });
}

const onThisMachine = () => names.map(onPath).find((found) => found !== undefined) ?? usualPaths.find(isExecutable);

function onPath(program: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders.map((folder) => path.join(folder, program)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
