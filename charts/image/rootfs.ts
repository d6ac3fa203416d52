import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { assembleApplication } from './application.ts';
import { copy, listFiles, settleTree, write } from './files.ts';
import { addLibraries } from './libraries.ts';

/**
 * `node charts/image/rootfs.ts --modules FOLDER --epoch SECONDS --out FOLDER`: the image's whole
 * root file system, from nothing. The Dockerfile and build.ts both run it, so they build the same.
 * Runs on Debian 12, by the very Node that goes in.
 *
 * `--modules` is a folder where `npm ci --omit=dev` has run with our package-lock.json; of its
 * packages those go in that the apps need. Prints one JSON document: the tree's SHA-256 and bytes,
 * and the Debian packages that its libraries come from.
 */
const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** Whom the image runs as: no one else's number, and that of distroless images. */
const user = 65_532;

try {
  const { values } = parseArgs({
    options: { modules: { type: 'string' }, epoch: { type: 'string' }, out: { type: 'string' } },
  });
  const { modules, out, epoch = '' } = values;
  if (modules === undefined || out === undefined || !/^\d+$/.test(epoch))
    throw new Error('Say all of --modules FOLDER, --epoch SECONDS and --out FOLDER.');
  process.umask(0o022);
  rmSync(out, { recursive: true, force: true });
  process.stdout.write(`${JSON.stringify(assemble(modules, path.resolve(out), Number(epoch)))}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

function assemble(modules: string, out: string, epochSeconds: number) {
  const node = addNode(out);
  const native = assembleApplication({ repository, modules, app: path.join(out, 'app') });
  const libraries = addLibraries(out, [node, ...native]);
  addSystemFiles(out);
  return { ...settleTree(out, epochSeconds), libraries };
}

function addNode(out: string): string {
  const { devDependencies } = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8')) as {
    devDependencies: { node: string };
  };
  const wanted = devDependencies.node;
  if (process.versions.node !== wanted)
    throw new Error(
      `This runs on Node ${process.versions.node}, and the image is to have ${wanted}: start it with that one.`,
    );
  const program = path.join(out, 'usr/local/bin/node');
  copy(process.execPath, program, 0o755);
  return program;
}

/**
 * The authorities of Debian's package, and not those that this machine trusts beside them. Node
 * carries its own; Temporal's client reads the system's.
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
