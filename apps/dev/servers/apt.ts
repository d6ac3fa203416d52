import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Report } from './process.ts';

/**
 * Installs Debian packages as root on Debian or a derivative, and reports it. Returns whether
 * apt-get succeeded. It waits up to a minute for another apt-get, and tries a second time, because
 * the package lists of a fresh image are empty.
 */
export async function installPackages(packages: readonly string[], report: Report): Promise<boolean> {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return false;
  const install = ['install', '-y', '--no-install-recommends', ...packages];
  report(
    `${packages.join(' ')} is not installed: running apt-get ${install.join(' ')} (as root, on this Debian or Ubuntu)`,
  );
  if (await aptGet(install)) return true;
  report('that failed; trying again after apt-get update');
  return (await aptGet(['update'])) && (await aptGet(install));
}

function aptGet(args: readonly string[]): Promise<boolean> {
  const child = spawn('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=60', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      DEBIAN_FRONTEND: 'noninteractive',
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C',
    },
  });
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
