/** docs/operations/restore-a-backup.md, with its own commands, on real servers and processes. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { spawnApp } from '#test/child-app.ts';
import type { TestDatabase } from '#test/database.ts';
import { createFactories } from '#test/make.ts';
import { callOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace, registerNamespace } from '#test/temporal.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';
import { worker as workerLabels } from '../charts/alerts-data.ts';
import { expectQuietAlerts } from './alerts.ts';
import { startArchivedPostgres } from './archived-postgres.ts';
import { carryOut, readSection, without } from './page.ts';

const page = 'restore-a-backup.md';
const patient = { timeout: 60_000, interval: 100 };
const settings = { DELIVERY_SCHEDULE: '200ms,3s,3s,3s,3s,3s,3s', REQUEUE_AFTER: '2s' };

/** A receiver that rejects or accepts, and the ids and numbers that it got. */
async function startSwitchedReceiver() {
  const receiver = await startReceiver();
  let status = 200;
  receiver.respond = (response) => void response.writeHead(status).end();
  return {
    url: receiver.url,
    set: (next: number) => {
      status = next;
    },
    ids: () => receiver.received.map(({ headers }) => String(headers['webhook-id'])),
    numbers: () => receiver.received.map(({ headers }) => Number(headers['webhook-sequence'])),
  };
}

function createOrgctl(database: TestDatabase, words: Record<string, string>) {
  const env = {
    DATABASE_URL: database.ownerUrl,
    REGION: 'us',
    ORG_API_STATE: temporaryFolder(),
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
  };
  return async (command: string) => {
    const args = command.split(' ').slice(1);
    const called = await callOrgctl(
      env,
      args.map((word) => words[word] ?? word),
    );
    expect(called, command).toMatchObject({ code: 0 });
    return called.stdout;
  };
}

/** Opens a database as its owner, until the test ends. */
async function openOwner({ ownerUrl }: TestDatabase) {
  const owner = await openDatabase({ server: parsePostgresUrl(ownerUrl), applicationName: 'test', poolMax: 2 });
  onTestFinished(() => owner.close());
  return { owner, make: createFactories(owner) };
}

const countStates = async (pool: { query: (text: string) => Promise<{ rows: unknown[] }> }) =>
  (await pool.query('select state, count(*)::int as count from delivery group by 1 order by 1')).rows;

it('a restore to a point in time sends what was sent after it again under the same id, loses nothing, and ends with all alerts quiet', {
  timeout: 240_000,
}, async () => {
  const receiver = await startSwitchedReceiver();
  const TEMPORAL_NAMESPACE = await makeNamespace('restore');
  const startWorker = (database: TestDatabase) => startTestWorker(database, { ...settings, TEMPORAL_NAMESPACE });
  const original = await startArchivedPostgres();
  const { owner, make } = await openOwner(original.database);
  await original.takeBaseBackup();
  const professional = await make.member();
  const { orgId } = professional;
  await make.webhook({ orgId, url: receiver.url });
  const paused = await make.webhook({ orgId, url: receiver.url, eventTypes: ['seat.ended'] });
  const key = await make.apiKey({ creator: professional });
  const family = await make.family({ orgId, name: 'Quillfeather' });
  const first = await startWorker(original.database);
  await make.grant({ professional });
  await vi.waitFor(async () => expect(await countStates(owner.pool)).toEqual([delivered(1)]), patient);
  receiver.set(500);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.ids().length).toBeGreaterThan(1), patient);
  const time = await original.readTime();

  // What happens after T, and is lost: one event is delivered, and one more is created.
  receiver.set(200);
  await make.grant({ professional });
  await vi.waitFor(async () => expect(await countStates(owner.pool)).toEqual([delivered(3)]), patient);
  await make.keyRevoked(key);
  const certificates = path.join(temporaryFolder(), 'certificates.jsonl');
  const erase = createOrgctl(original.database, {});
  await writeFile(certificates, await erase(`orgctl family erase --family ${family} --reference case-17 --json`));
  const sentAfter = receiver.ids();
  const highest = Math.max(...receiver.numbers());

  let restored = original.database;
  let worker: Awaited<ReturnType<typeof startWorker>> | undefined;
  const orgctl = (command: string) => createOrgctl(restored, { KEY: key.id, WEBHOOK: paused.id })(command);
  await carryOut(readSection(page, 'Restore'), [
    [/^kubectl .* patch (application|helmrelease)/, without('no Argo CD or Flux runs')],
    [/^kubectl .* scale .* --replicas=0$/, () => first.stop()],
    [/^kubectl .* wait --for=delete pod/, without('stopping has waited')],
    [
      /^# postgresql-restored\.yaml/,
      async (manifests) => {
        const [{ spec }] = parseAllDocuments(manifests).map((one) => one.toJS());
        const { recoveryTarget, source } = spec.bootstrap.recovery;
        expect(spec.externalClusters).toEqual([expect.objectContaining({ name: source })]);
        expect(recoveryTarget.targetTime).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00$/);
        await original.archiveAll();
        restored = await original.restore(time);
      },
    ],
    [/^kubectl (apply|.* wait) .*(postgresql-restored|cluster)/, without('the file above is carried out')],
    [/^(sed |secret\(\)|move_url)/, without('tests of the charts and of the operator run these')],
    [/^kubectl .*(pod orgctl|pod\/orgctl|-f orgctl\.yaml)/, without('orgctl runs here')],
    [/exec orgctl -- node apps\/migrate\/main\.ts$/, () => migrate(restored)],
    [/^orgctl (key revoke|webhook pause) /, orgctl],
    [
      /^orgctl family erase-again .* < certificates\.jsonl$/,
      (command) => orgctl(command.replace(/\/dev\/stdin < certificates\.jsonl$/, certificates)),
    ],
    [
      /^with /,
      async (sql) => {
        const { owner } = await openOwner(restored);
        await owner.pool.query(sql);
      },
    ],
    [
      /^helm upgrade \$RELEASE /,
      async () => {
        worker = await startWorker(restored);
      },
    ],
    [/^helm upgrade operator |^kubectl .* wait region/, without('no operator runs')],
    [/^kubectl .* scale .* --replicas=2$/, without('the worker runs')],
    [/^orgctl ledger$/, async (command) => expect(await orgctl(command)).toMatch(/^difference +0$/m)],
    [/^helm test /, without('there is no probe')],
  ]);
  // Step 7: the platform repeats what it changed after T.
  const after = await openOwner(restored);
  await after.make.grant({ professional });

  await vi.waitFor(async () => expect(await countStates(after.owner.pool)).toEqual([delivered(3)]), patient);
  const { rows } = await after.owner.pool.query<{ id: string }>('select id from event order by id');
  const [old = '', open = '', repeated = ''] = rows.map(({ id }) => id);
  const sentAgain = receiver.ids().slice(sentAfter.length);
  expect(sentAfter.filter((id) => id === old)).toHaveLength(1);
  expect(sentAfter).toContain(open);
  expect(sentAgain.toSorted()).toEqual([open, repeated].toSorted());
  // The retry of the open one may come before or after the new one.
  expect(receiver.numbers()[receiver.ids().indexOf(repeated)]).toBeGreaterThan(highest + 1);
  const revoked = await after.owner.pool.query('select from api_key where revoked_at is not null');
  expect(revoked.rows).toHaveLength(1);
  const { rows: states } = await after.owner.pool.query('select state from webhook where id = $1', [paused.id]);
  expect(states).toEqual([{ state: 'paused' }]);
  const { rows: families } = await after.owner.pool.query('select from family where name = $1', ['Quillfeather']);
  expect(families).toEqual([]);
  await expectQuietWorker(worker?.metricsUrl ?? '');
});

it('a new namespace of Temporal in place of a lost one loses no delivery, and ends with all alerts quiet', {
  timeout: 240_000,
}, async () => {
  const receiver = await startSwitchedReceiver();
  const { database, owner, make } = await setupDatabase();
  const lost = await startTestWorker(database, { ...settings, TEMPORAL_NAMESPACE: await makeNamespace('lost') });
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  receiver.set(500);
  for (let count = 0; count < 3; count += 1) await make.grant({ professional });
  await vi.waitFor(() => expect(new Set(receiver.ids()).size).toBe(3), patient);
  receiver.set(200);

  const suffix = database.name.slice(-12).replaceAll('_', '-');
  let TEMPORAL_NAMESPACE = '';
  let worker: Awaited<ReturnType<typeof startTestWorker>> | undefined;
  const orgctl = createOrgctl(database, {});
  await carryOut(readSection(page, 'If Temporal’s store is lost'), [
    [
      /^# us-values\.yaml, also: a new namespace/,
      (values) => {
        TEMPORAL_NAMESPACE = `${/namespace: ([\w-]+)/.exec(values)?.[1]}-${suffix}`;
      },
    ],
    [
      /^temporal operator namespace create /,
      async (command) => {
        const name = /--namespace (\S+)/.exec(command)?.[1];
        expect(TEMPORAL_NAMESPACE).toBe(`${name}-${suffix}`);
        const connection = await Connection.connect({ address: inject('temporalAddress') });
        await registerNamespace(connection.workflowService, TEMPORAL_NAMESPACE, '3 days').finally(() =>
          connection.close(),
        );
      },
    ],
    [
      /^helm upgrade /,
      async () => {
        await lost.stop();
        worker = await startTestWorker(database, { ...settings, TEMPORAL_NAMESPACE });
      },
    ],
    [/^orgctl ledger$/, async (command) => expect(await orgctl(command)).toMatch(/^difference +0$/m)],
  ]);

  await vi.waitFor(async () => expect(await countStates(owner.pool)).toEqual([delivered(3)]), patient);
  expect(new Set(receiver.ids()).size).toBe(3);
  await expectQuietWorker(worker?.metricsUrl ?? '');
});

const delivered = (count: number) => ({ state: 'delivered', count });

/** Waits until the worker has read the ledger that has nothing open. */
async function expectQuietWorker(metricsUrl: string): Promise<void> {
  await vi.waitFor(async () => {
    const text = await (await fetch(new URL('/metrics', metricsUrl))).text();
    expect(text).toMatch(/^org_api_ledger_delivered(\{.*\})? 3$/m);
  }, patient);
  await expectQuietAlerts([{ labels: workerLabels, metricsUrl }]);
}

async function migrate(database: TestDatabase): Promise<void> {
  const { api, worker, console, operator } = database.urls;
  const migration = spawnApp('migrate', {
    REGION: 'us',
    DATABASE_URL: database.ownerUrl,
    API_DATABASE_URL: api,
    WORKER_DATABASE_URL: worker,
    CONSOLE_DATABASE_URL: console,
    OPERATOR_DATABASE_URL: operator,
  });
  expect(await migration.ended, migration.lines.join('\n')).toMatchObject({ code: 0 });
}
