import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { type Build, describeBuild } from './build-id.ts';
import { configFlags, openStore, run } from './buildah.ts';
import { getModules } from './modules.ts';

/**
 * `npm run -s tool -- image [--tag NAME:TAG] [--build-id ID] [--archive FILE]`: builds the image of all
 * apps with buildah, without a daemon and without pulling. Prints one JSON document:
 * `{"image", "archive", "buildId", "imageId", "bytes", "rootfsSha256"}`; progress goes to standard
 * error.
 *
 * One commit gives one image id on machines with the same Debian libraries. `--build-id` names
 * another build of the same sources, to try upgrades: only a variable and a label differ.
 */
const usage = `Usage: npm run -s tool -- image [options]

  --tag NAME:TAG     name of the image (localhost/org-api:BUILD_ID)
  --build-id ID      instead of the one that version and commit give
  --archive FILE     where to write it, as docker load, kind load and ctr import take it (.org-api/image/BUILD_ID.tar)
  --print-build-id   print the build id and build nothing
`;
const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const report = (line: string) => process.stderr.write(`image: ${line}\n`);

const values = startCommand({
  usage,
  read: () =>
    parseArgs({
      options: {
        tag: { type: 'string' },
        'build-id': { type: 'string' },
        archive: { type: 'string' },
        'print-build-id': { type: 'boolean' },
      },
    }).values,
});
try {
  const described = describeBuild(repository);
  const build = { ...described, buildId: values['build-id'] ?? described.buildId };
  if (values['print-build-id']) process.stdout.write(`${build.buildId}\n`);
  else process.stdout.write(`${JSON.stringify(await buildImage(build, values.tag, values.archive))}\n`);
} catch (error) {
  process.stderr.write(`The image was not built: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function buildImage(build: Build, tag = `localhost/org-api:${build.buildId}`, archive?: string) {
  if (!/^[\w][\w.-]{0,62}$/.test(build.buildId)) throw new Error('a build id is at most 63 letters, digits, . _ and -');
  const file = path.resolve(archive ?? path.join(repository, '.org-api/image', `${build.buildId}.tar`));
  const modules = await getModules(repository, report);
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-image-'));
  try {
    report('assembling the root file system');
    const rootfs = path.join(work, 'rootfs');
    const program = path.join(repository, 'charts/image/rootfs.ts');
    const args = [program, '--modules', modules, '--epoch', String(build.epochSeconds), '--out', rootfs];
    const tree = JSON.parse(run(process.execPath, args)) as { sha256: string };
    report('packing it');
    mkdirSync(path.dirname(file), { recursive: true });
    rmSync(file, { force: true });
    const imageId = pack({ build, rootfs, work, tag, file });
    const { size: bytes } = statSync(file);
    report(`${tag}, ${(bytes / 1e6).toFixed(0)} MB unpacked, is in ${file}`);
    return { image: tag, archive: file, buildId: build.buildId, imageId, bytes, rootfsSha256: tree.sha256 };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * Packs the tree with buildah, in a separate store that needs no mounts and is deleted. Returns
 * the image's id. The image is committed to the archive: a commit to the store and a push from it
 * write the same bytes, and copy the tree twice more.
 */
function pack(options: { build: Build; rootfs: string; work: string; tag: string; file: string }): string {
  const { build, rootfs, work, tag, file } = options;
  const buildah = openStore(work);
  const container = buildah('from', 'scratch');
  buildah('copy', '--quiet', '--chown', '0:0', container, rootfs, '/');
  buildah('config', ...configFlags(build), container);
  buildah('commit', '--quiet', '--timestamp', String(build.epochSeconds), container, `docker-archive:${file}:${tag}`);
  const [{ Config }] = JSON.parse(run('tar', ['-xOf', file, 'manifest.json'])) as [{ Config: string }];
  return path.basename(Config, '.json');
}
