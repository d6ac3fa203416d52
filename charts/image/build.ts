import path from 'node:path';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { type Build, describeBuild } from './build-id.ts';
import { buildImage } from './build-image.ts';

/**
 * `npm run -s tool -- image`: builds the image of all apps with buildah, without a daemon. Prints one JSON document:
 * `{"image", "archive", "buildId", "imageId", "bytes"}`; progress goes to standard error.
 *
 * `--build-id` names another build of the same sources, to try upgrades: only a label differs.
 */
const usage = `Usage: npm run -s tool -- image [options]

  --tag NAME:TAG     name of the image (localhost/org-api:BUILD_ID)
  --build-id ID      instead of the one that version and commit give
  --archive FILE     where to write it, as docker load, kind load and ctr import take it (.org-api/image/BUILD_ID.tar)
  --pull             on the bases that the Dockerfile names by digest; without it, on bases that are made here, of
                     Debian's packages, and nothing is pulled
  --no-cache         uses no layer of an earlier build
  --print-build-id   print the build id and build nothing
`;
const repository = path.resolve(import.meta.dirname, '../..');
const report = (line: string) => void process.stderr.write(`image: ${line}\n`);

const values = startCommand({
  usage,
  read: () =>
    parseArgs({
      options: {
        tag: { type: 'string' },
        'build-id': { type: 'string' },
        archive: { type: 'string' },
        pull: { type: 'boolean' },
        'no-cache': { type: 'boolean' },
        'print-build-id': { type: 'boolean' },
      },
    }).values,
});
try {
  const described = describeBuild(repository);
  const build = { ...described, buildId: values['build-id'] ?? described.buildId };
  if (values['print-build-id']) process.stdout.write(`${build.buildId}\n`);
  else process.stdout.write(`${JSON.stringify(await make(build))}\n`);
} catch (error) {
  process.stderr.write(`The image was not built: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function make(build: Build) {
  const { buildId } = build;
  if (!/^[\w][\w.-]{0,62}$/.test(buildId)) throw new Error('a build id is at most 63 letters, digits, . _ and -');
  const image = values.tag ?? `localhost/org-api:${buildId}`;
  const archive = path.resolve(values.archive ?? path.join(repository, '.org-api/image', `${buildId}.tar`));
  const { pull = false, 'no-cache': withoutCache = false } = values;
  const built = await buildImage({ repository, build, tag: image, archive, pull, withoutCache, report });
  report(`${image}, ${(built.bytes / 1e6).toFixed(0)} MB unpacked, is in ${archive}`);
  return { image, archive, buildId, ...built };
}
