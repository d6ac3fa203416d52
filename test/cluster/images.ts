import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import type { Cluster } from './cluster.ts';
import { runCommand } from './command.ts';
import type { Image } from './release.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const name = 'localhost/org-api';

/** What `npm run image` prints. */
interface Built {
  image: string;
  archive: string;
  bytes: number;
}

/**
 * Builds the image of this checkout under each tag, which is its build id too, and loads them. Two
 * tags differ in that alone, as two versions without a change of the schema do.
 */
export async function buildImages(
  cluster: Cluster,
  tags: readonly string[],
  report: (line: string) => void,
): Promise<Image[]> {
  const built = await Promise.all(tags.map(build)); // one keeps one core busy
  await cluster.loadImages(built.map(({ archive }) => archive));
  for (const { image, bytes } of built) report(`${image}: ${Math.round(bytes / 1e6)} MB, built and loaded`);
  return tags.map((tag) => ({ repository: name, tag }));
}

async function build(tag: string): Promise<Built> {
  const args = ['charts/image/build.ts', '--tag', `${name}:${tag}`, '--build-id', tag];
  const printed = await runCommand(process.execPath, args, { env: process.env, cwd: repository, timeoutMs: 600_000 });
  return JSON.parse(printed) as Built;
}

/** The same image with one more migration, which fails: what a bad release looks like. */
export function buildBrokenImage(cluster: Cluster, from: Image, tag: string): Promise<Image> {
  return buildChangedImage(cluster, { from, tag, target: '/app/apps/domain/db/migrations/index.ts' }, (file) => {
    const migrations = readFileSync(path.join(repository, 'apps/domain/db/migrations/index.ts'), 'utf8');
    writeFileSync(file, withFailingMigration(migrations));
  });
}

/** The same image with workflows that cannot replay the histories of its own. */
export async function buildIncompatibleImage(cluster: Cluster, from: Image, tag: string): Promise<Image> {
  const workflowsPath = path.join(repository, 'test/workflows/altered/index.ts');
  const bundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  return buildChangedImage(cluster, { from, tag, target: '/app/workflows.bundle.json' }, (file) =>
    writeWorkflowBundle(file, bundle),
  );
}

/** An image with one file replaced and its tag as the build id; loads it. */
async function buildChangedImage(
  cluster: Cluster,
  { from, tag, target }: { from: Image; tag: string; target: string },
  write: (file: string) => void,
): Promise<Image> {
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-changed-'));
  const file = path.join(work, 'file');
  const archive = path.join(work, 'image.tar');
  const buildah = (...args: string[]) => runCommand('buildah', args, { env: process.env, timeoutMs: 300_000 });
  const container = (await buildah('from', '--pull-never', `docker-archive:${archiveOf(from)}`)).trim();
  try {
    write(file);
    await buildah('copy', container, file, target);
    await buildah('config', '--env', `ORG_API_BUILD_ID=${tag}`, container);
    const committed = (await buildah('commit', '--quiet', container, `${name}:${tag}`)).trim();
    await buildah('push', '--quiet', committed, `docker-archive:${archive}:${name}:${tag}`);
    await cluster.loadImages([archive]);
  } finally {
    await buildah('rm', container).catch(() => {});
    rmSync(work, { recursive: true, force: true });
  }
  return { repository: name, tag };
}

const archiveOf = ({ tag }: Image) => path.join(repository, '.org-api/image', `${tag}.tar`);

/** A migration that writes first and then fails, so that what it wrote must be undone. */
function withFailingMigration(source: string): string {
  const failing = `
import { Migration } from '@mikro-orm/migrations';
class Failing extends Migration {
  override up(): void {
    this.addSql('create table half_done (id int)');
    this.addSql('select 1 / 0');
  }
}
migrations.push({ name: '9999-failing', class: Failing });
`;
  return `${source.replace(/currentMigration = '[^']+'/, "currentMigration = '9999-failing'")}${failing}`;
}
