/** A rollout by the operator: real workers of several builds, Temporal and API server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { type ApiServer, startApiServer } from './api-server.ts';
import { arrangeRollout, waiting } from './rollout.ts';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

it('a build that cannot replay takes no traffic, and the repaired one goes through although the operator is killed', {
  timeout: 400_000,
}, async () => {
  const t = await arrangeRollout(server);
  t.startOperator('one');
  t.startBuild('a');
  await t.release('a');
  await vi.waitFor(async () => expect(await t.routing()).toBe('a'), waiting);

  t.receiver.answer = (response) => void response.writeHead(503).end();
  await t.makeEvents(5);
  await vi.waitFor(async () => expect(await t.count('attempts > 0')).toBe(5), waiting);
  t.startBuild('broken', { WORKFLOW_BUNDLE: await bundleAltered() });
  await t.release('broken');
  await vi.waitFor(async () => expect(await t.conditions()).toContain('ReplayVerified False ReplayFailed'), waiting);
  expect(await t.conditions()).toContain('Progressing False ReplayFailed');
  expect(await t.conditions()).toContain('Ready False ReplayFailed');
  expect(await t.events()).toContain('RolloutHeld');
  expect(await t.routing()).toBe('a');
  t.receiver.answer = (response) => void response.writeHead(204).end();
  await t.makeEvents(1);
  await vi.waitFor(async () => expect(await t.count(`state = 'delivered'`)).toBe(6), waiting);

  const seen = t.watchRouting();
  const operator = t.startOperator('two');
  t.startBuild('repaired');
  await t.release('repaired');
  await vi.waitFor(() => expect(seen.at(-1)).toBe('a, repaired 5 %'), waiting);
  t.kill('one');
  t.kill('two');
  await operator.ended;
  t.startOperator('three');
  await vi.waitFor(async () => expect(await t.conditions()).toContain('WorkersCurrent True BuildCurrent'), waiting);
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready True AllConditionsHold'), waiting);

  await vi.waitFor(() => expect(seen.at(-1)).toBe('repaired'), waiting);
  expect(seen).toEqual(['a', 'a, repaired 5 %', 'a, repaired 50 %', 'repaired']);
  expect(await t.conditions()).toContain('ReplayVerified True HistoriesReplayed');
  expect((await t.read()).status?.rollout).toMatchObject({ build: 'repaired', state: 'Current', failed: 0 });
  await t.makeEvents(1);
  await vi.waitFor(async () => expect(await t.count(`state = 'delivered'`)).toBe(7), waiting);

  // Under the Role of the chart: this used each of its rights and needed no other.
  expect(t.installed.listForbidden()).toEqual([]);
  expect(t.installed.listUsed()).toEqual(t.installed.allowed);
});

/** Workflow code that takes other steps than the histories. */
async function bundleAltered(): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'altered-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'bundle.json');
  const workflowsPath = fileURLToPath(new URL('../workflows/altered/index.ts', import.meta.url));
  writeWorkflowBundle(file, await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') }));
  return file;
}
