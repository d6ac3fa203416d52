import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import type { Cluster } from './cluster.ts';
import { runCommand } from './command.ts';
import type { Image } from './release.ts';

/** This checkout. */
export const repository = fileURLToPath(new URL('../..', import.meta.url));
const name = 'localhost/org-api';

/** The output of `npm run tool -- image`. */
interface Built {
  image: string;
  archive: string;
  bytes: number;
}

/**
 * Builds the image of a checkout under each tag, which is also its build id, and loads them. Two
 * tags of one checkout differ only in that, like two versions without a change of the schema.
 */
export async function buildImages(
  cluster: Cluster,
  wanted: readonly { tag: string; folder: string }[],
  report: (line: string) => void,
): Promise<Image[]> {
  const built: Built[] = [];
  for (const one of wanted) built.push(await build(one)); // the next one uses the layers
  await cluster.loadImages(built.map(({ archive }) => archive));
  for (const { image, bytes } of built) report(`${image}: ${Math.round(bytes / 1e6)} MB, built and loaded`);
  return wanted.map(({ tag, folder }) => ({ repository: name, tag, charts: path.join(folder, 'charts') }));
}

async function build({ tag, folder }: { tag: string; folder: string }): Promise<Built> {
  const args = [
    'charts/image/build.ts',
    '--tag',
    `${name}:${tag}`,
    '--build-id',
    tag,
    '--archive',
    getArchive({ tag }),
  ];
  const printed = await runCommand(process.execPath, args, { env: process.env, cwd: folder, timeoutMs: 600_000 });
  return JSON.parse(printed) as Built;
}

/** The same image with one more migration, which fails: a bad release. */
export function buildBrokenImage(cluster: Cluster, from: Image, tag: string): Promise<Image> {
  return buildChangedImage(cluster, { from, tag, files: migrationsWith(failing) });
}

/**
 * Columns that the migration of a release adds to tables that reads, deliveries and the platform
 * use continuously, whose statements PostgreSQL has prepared for pods of both versions.
 */
export const addedColumns = ['audit_entry', 'client_grant', 'delivery', 'webhook'].map((table) => ({
  table,
  column: 'added_by_release',
}));

/**
 * Two versions that add columns: one whose workflows fail, and the same one repaired.
 */
export async function buildExpandingImages(
  cluster: Cluster,
  from: Image,
  tags: { failing: string; repaired: string },
): Promise<{ failing: Image; repaired: Image }> {
  const workflowsPath = path.join(repository, 'test/workflows/failing.ts');
  const bundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  const migrations = migrationsWith(expanding);
  const workflows: ChangedFile = {
    target: '/app/workflows.bundle.json',
    write: (file) => writeWorkflowBundle(file, bundle),
  };
  return {
    failing: await buildChangedImage(cluster, { from, tag: tags.failing, files: [...migrations, workflows] }),
    repaired: await buildChangedImage(cluster, { from, tag: tags.repaired, files: migrations }),
  };
}

/** A file that differs from the one of another image. */
interface ChangedFile {
  target: string;
  write(file: string): void;
}

/** Creates an image with some files replaced, and loads it. */
async function buildChangedImage(
  cluster: Cluster,
  { from, tag, files }: { from: Image; tag: string; files: readonly ChangedFile[] },
): Promise<Image> {
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-changed-'));
  const archive = path.join(work, 'image.tar');
  const buildah = (...args: string[]) => runCommand('buildah', args, { env: process.env, timeoutMs: 300_000 });
  const container = (await buildah('from', '--pull-never', `docker-archive:${getArchive(from)}`)).trim();
  try {
    for (const { target, write } of files) {
      const file = path.join(work, path.basename(target));
      write(file);
      await buildah('copy', container, file, target);
    }
    const committed = (await buildah('commit', '--quiet', container, `${name}:${tag}`)).trim();
    await buildah('push', '--quiet', committed, `docker-archive:${archive}:${name}:${tag}`);
    await cluster.loadImages([archive]);
  } finally {
    await buildah('rm', container).catch(() => {});
    rmSync(work, { recursive: true, force: true });
  }
  return { ...from, tag };
}

const getArchive = ({ tag }: Pick<Image, 'tag'>) => path.join(repository, '.org-api/image', `${tag}.tar`);

interface AddedMigration {
  name: string;
  statements: readonly string[];
}

/** Writes first and then fails, so that its writes must be undone. */
const failing: AddedMigration = {
  name: '9999-failing',
  statements: ['create table half_done (id int)', 'select 1 / 0'],
};

const expanding: AddedMigration = {
  name: '9998-expanding',
  statements: addedColumns.map(
    ({ table, column }) => `alter table ${table} add column ${column} int not null default 0`,
  ),
};

/** The migrations of this checkout and one more, which the version then needs. */
function migrationsWith({ name: added, statements }: AddedMigration): ChangedFile[] {
  const version = changeFile('apps/domain/db/schema-version.ts', (source) => {
    const end = '\n] as const;';
    if (!source.includes(end)) throw new Error('schema-version.ts no longer ends its list of migrations so');
    return source.replace(end, `\n  '${added}',${end}`);
  });
  const code = `
import { Migration } from '@mikro-orm/migrations';
class Added extends Migration {
  override up(): void {
    for (const statement of ${JSON.stringify(statements)}) this.addSql(statement);
  }
}
migrations.push({ name: '${added}', class: Added });
`;
  return [version, changeFile('apps/migrate/migrations/index.ts', (source) => `${source}${code}`)];
}

function changeFile(name: string, change: (source: string) => string): ChangedFile {
  const changed = change(readFileSync(path.join(repository, name), 'utf8'));
  return { target: `/app/${name}`, write: (file) => writeFileSync(file, changed) };
}
