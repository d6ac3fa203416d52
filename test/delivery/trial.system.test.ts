/** New workers that cannot work, beside one that can: real processes and Temporal. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { expect, inject, it, vi } from 'vitest';
import { waitUntilOnlyWorker } from '#delivery/other-workers.ts';
import type { Database } from '#domain/db/database.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { createLog } from '#runtime/log.ts';
import { spawnWorker, startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { workerEnvironment } from '#test/worker.ts';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';

const timeout = 120_000;
const recording = 'update (finished_at) on delivery_attempt';
const patient = { timeout: 60_000, interval: 100 };
const otherKey = `2:${Buffer.from('a key that seals nothing here...').toString('base64')}`;

it.each<[string, (owner: Database) => Promise<Record<string, string>>, string]>([
  ['whose workflow tasks fail', async () => ({ WORKFLOW_BUNDLE: await bundleFailing() }), 'workflow tasks failed.'],
  ['that cannot sign', async () => ({ WEBHOOK_SECRET_KEYS: otherKey }), 'A request could not be signed.'],
  [
    'that cannot record',
    (owner) => owner.pool.query(`revoke ${recording} from org_api_worker`).then(() => ({})),
    'An attempt could not be admitted, made or recorded.',
  ],
])(
  'a new worker %s stops and stays unready, and the one before delivers everything',
  { timeout },
  async (_, setUp, reason) => {
    const { database, owner, make } = await setupDatabase();
    const receiver = await startReceiver();
    const professional = await make.member();
    await make.webhook({ orgId: professional.orgId, url: receiver.url, eventTypes: ['client.started'] });
    const namespace = await makeNamespace('org-api-trial');
    const port = await getFreePort();
    const settings = { TEMPORAL_NAMESPACE: namespace, REQUEUE_AFTER: '1s' };
    const broken = spawnWorker(
      workerEnvironment(database, {
        ...settings,
        ...(await setUp(owner)),
        READY_AFTER: '10m',
        METRICS_PORT: String(port),
      }),
    );
    const readiness = async () =>
      (await fetch(`http://127.0.0.1:${port}/readyz`)).json() as Promise<{ reason: string }>;
    await vi.waitFor(async () => expect((await readiness()).reason).toMatch(/READY_AFTER/), patient);

    await make.grant({ professional });
    await vi.waitFor(async () => expect((await readiness()).reason).toMatch(/^stopped by an internal error/), patient);
    await vi.waitFor(() => expect(broken.lines.join('\n')).toContain(reason), patient);
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(page).toMatch(/^org_api_worker_is_stopped 1$/m);

    await owner.pool.query(`grant ${recording} to org_api_worker`);
    await startChildWorker(workerEnvironment(database, settings));
    await make.grant({ professional });
    await vi.waitFor(
      async () => expect(await readLedger(owner)).toMatchObject({ delivered: 2, difference: 0 }),
      patient,
    );
    const counts = () => fetch(`http://127.0.0.1:${port}/metrics`).then((one) => one.text());
    expect(/^org_api_deliveries_claimed_total (\d+)/m.exec(await counts())?.[1]).toBe('1');
    expect(await broken.stop()).toBe(0);
  },
);

it('a stopped worker delivers again only when no other one has polled for a while', { timeout }, async () => {
  const { database } = await setupDatabase();
  const namespace = await makeNamespace('org-api-alone');
  const other = await startChildWorker(workerEnvironment(database, { TEMPORAL_NAMESPACE: namespace }));
  const common = {
    server: { address: inject('temporalAddress'), namespace },
    queue: deliverQueue,
    checkEveryMs: 100,
    log: createLog({ level: 'silent', name: 'test', region: 'us' }),
  } as unknown as Omit<Parameters<typeof waitUntilOnlyWorker>[0], 'signal'>;
  await expect(
    waitUntilOnlyWorker({ ...common, goneAfterMs: 300_000, signal: AbortSignal.timeout(2_000) }),
  ).rejects.toThrow();

  await other.stop();
  await waitUntilOnlyWorker({ ...common, goneAfterMs: 1_000, signal: AbortSignal.timeout(60_000) });
});

async function bundleFailing(): Promise<string> {
  const folder = temporaryFolder();
  const file = path.join(folder, 'bundle.json');
  const workflowsPath = fileURLToPath(new URL('../workflows/failing.ts', import.meta.url));
  writeWorkflowBundle(file, await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') }));
  return file;
}
