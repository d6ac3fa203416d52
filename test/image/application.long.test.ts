import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { spawnWorker, startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { workerEnvironment } from '#test/worker.ts';
import { assembleApplication } from '../../charts/image/application.ts';
import { normalizeTree } from '../../charts/image/files.ts';

const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

it('the image’s content delivers an event without a bundler, and is the same when it is built twice', async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const app = assemble();
  const bundle = path.join(app, 'workflows.bundle.json');
  expect(existsSync(path.join(app, 'node_modules/@swc'))).toBe(false);
  expect(readFileSync(bundle, 'utf8')).not.toContain(repository);

  await startChildWorker(workerEnvironment(database, { WORKFLOW_BUNDLE: bundle }), app);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), { timeout: 20_000 });

  expect(normalizeTree(assemble(), 0)).toEqual(normalizeTree(app, 0));
  const bundler = spawnWorker(workerEnvironment(database, { WORKFLOW_BUNDLE: '' }), app);
  expect(await bundler.ended).toBe(1);
}, 120_000);

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

function assemble(): string {
  const app = temporaryFolder();
  assembleApplication({
    repository,
    modules: repository,
    app,
    system: `${process.platform} ${process.arch}`,
  });
  return app;
}
