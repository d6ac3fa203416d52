/** How a worker starts: its settings, the schema it waits for, and secrets that change under it. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { sealSecret } from '#domain/webhooks/seal.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { spawnWorker } from '#test/child-worker.ts';
import { createTestDatabase } from '#test/database.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { startReceiver } from '#test/receiver.ts';
import { testSealingKeys, testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker, workerEnvironment } from '#test/worker.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { migrate } from '../../apps/migrate/migrate.ts';

const patient = { timeout: 30_000, interval: 100 };

it('a worker waits for the migrations, unready with the reason, and takes no work before', async () => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const port = await getFreePort();
  const worker = spawnWorker(
    // It bundles the workflows itself, as a worker outside the image does.
    workerEnvironment(database, { METRICS_PORT: String(port), WORKFLOW_BUNDLE: '' }),
  );
  const readiness = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    const { reason } = (await response.json()) as { reason?: string };
    return { status: response.status, reason };
  };
  await vi.waitFor(async () => {
    const reason = expect.stringMatching(/^the database’s schema is older/);
    expect(await readiness()).toEqual({ status: 503, reason });
  }, patient);
  expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
  expect(worker.lines.join('\n')).not.toContain('the worker is running');

  await migrate({
    owner: parsePostgresUrl(database.ownerUrl),
    logins: [{ role: 'worker', server: parsePostgresUrl(database.urls.worker) }],
  });
  await vi.waitFor(async () => expect((await readiness()).status).toBe(200), patient);
  expect(await worker.stop()).toBe(0);
}, 60_000);

it('a worker that waits is ended by a signal', async () => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const worker = spawnWorker(workerEnvironment(database));
  await vi.waitFor(() => expect(worker.lines.join('\n')).toContain('waiting for the schema'), patient);
  expect(await worker.stop()).toBe(0);
}, 60_000);

it('a worker unseals secrets under a key that was added to its file meanwhile', async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  const { id, secret } = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const mounted = mountSecret({ WEBHOOK_SECRET_KEYS: testWebhookSecretKeys });
  const { logLines } = await startTestWorker(database, { WEBHOOK_SECRET_KEYS: '', ...mounted.settings });

  const newKey = { version: 2, secret: Buffer.from('another sealing key of tests, 32') };
  mounted.replace({ WEBHOOK_SECRET_KEYS: `2:${newKey.secret.toString('base64')},${testWebhookSecretKeys}` });
  await vi.waitFor(() => expect(logLines.join('')).toContain('read again from its file'), patient);
  const sealed = sealSecret(secret, { organizationId: professional.orgId, webhookId: id }, [
    newKey,
    ...testSealingKeys,
  ]);
  await owner.pool.query('update webhook_secret set sealed = $1 where webhook_id = $2', [sealed, id]);
  await make.grant({ professional });

  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  const [post] = receiver.received;
  const { checks } = verifyDelivery({
    headers: post?.headers ?? {},
    body: post?.body ?? Buffer.alloc(0),
    secrets: [secret],
  });
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
}, 60_000);
