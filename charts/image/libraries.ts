import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { programEnvironment } from '../../apps/dev/servers/program-environment.ts';
import { copy, write } from './files.ts';

/**
 * Copies the shared libraries that programs need into a root file system, as this machine's dynamic
 * loader finds them, to the paths that programs request.
 *
 * Their Debian packages are recorded as Debian does (`/var/lib/dpkg/status.d`, and each package's
 * copyright), so that vulnerability scanners see them.
 *
 * @throws Error when this is not Debian, or a library is missing.
 */
export function addLibraries(rootfs: string, programs: string[]): string[] {
  const libraries = [...new Set(programs.flatMap(librariesOf))].sort();
  for (const library of libraries) copy(realpathSync(library), path.join(rootfs, library), 0o755);
  // Debian joins /lib with /usr/lib; programs name the loader by either path.
  for (const name of ['lib', 'lib64']) {
    const from = `/${name}`;
    if (existsSync(from) && lstatSync(from).isSymbolicLink() && !existsSync(path.join(rootfs, from)))
      symlinkSync(readlinkSync(from), path.join(rootfs, from));
  }
  const packages = [...new Set(libraries.map(packageOf))].sort();
  for (const name of packages) recordPackage(rootfs, name);
  return packages;
}

/** Returns absolute paths below /usr, from `ldd`. */
function librariesOf(program: string): string[] {
  const printed = execFileSync('ldd', [program], { encoding: 'utf8', env: programEnvironment() });
  const missing = /^\s*(\S+) => not found/m.exec(printed)?.[1];
  if (missing !== undefined) throw new Error(`${path.basename(program)} needs ${missing}: install its package`);
  return [...printed.matchAll(/(\/\S+) \(0x/g)].map(([, file = '']) =>
    file.startsWith('/usr/') ? file : `/usr${file}`,
  );
}

function packageOf(library: string): string {
  // dpkg knows a file by the path in its package, which may be without /usr.
  for (const file of [library, library.replace(/^\/usr/, '')]) {
    try {
      const options = { encoding: 'utf8', stdio: 'pipe', env: programEnvironment() } as const;
      const [name = ''] = execFileSync('dpkg-query', ['-S', file], options).split(': ');
      return name;
    } catch {}
  }
  throw new Error(`no Debian package has ${library}: assemble the image on Debian 12, as the Dockerfile does`);
}

function recordPackage(rootfs: string, name: string): void {
  const bare = name.split(':')[0] ?? name;
  const status = execFileSync('dpkg-query', ['-s', name], { encoding: 'utf8', env: programEnvironment() });
  write(path.join(rootfs, 'var/lib/dpkg/status.d', bare), status);
  const copyright = `/usr/share/doc/${bare}/copyright`;
  if (existsSync(copyright)) write(path.join(rootfs, copyright), readFileSync(copyright, 'utf8'));
}
