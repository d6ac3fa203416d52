import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type Report, startTracked } from './process.ts';

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

/** Its errors are shown as they are. */
async function aptGet(args: readonly string[]): Promise<boolean> {
  const env = {
    DEBIAN_FRONTEND: 'noninteractive',
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C',
  };
  const options = ['-q', '-o', 'DPkg::Lock::Timeout=60', ...args];
  const { exited } = await startTracked(() =>
    spawn('apt-get', options, { stdio: ['ignore', 'ignore', 'inherit'], env }),
  );
  return (await exited) === 'exit code 0';
}
