import { randomBytes, randomUUID } from 'node:crypto';
import { CoreV1Api, CustomObjectsApi, EventsV1Api, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { Migration } from '@mikro-orm/migrations';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { currentMigration } from '#domain/db/schema-version.ts';
import { unsealSecret } from '#domain/webhooks/seal.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createKubeConfig } from '#test/api-server.ts';
import { makeCertificate } from '#test/certificates.ts';
import { insertApps, newerSealingKeys, openApps, rotatedWebhookSecretKeys } from '#test/sealed-rows.ts';
import { frontName, startTemporalFront } from '#test/temporal-front.ts';
import { openPool } from '#test/webhook-rows.ts';
import { testNamespace } from '#test/worker.ts';
import { ensureLogin } from '../../apps/migrate/logins.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { migrations, type NamedMigration } from '../../apps/migrate/migrations/index.ts';
import { kinds } from '../../apps/operator/kube/resources.ts';
import { Connections } from '../../apps/operator/region/connections.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { regionIn, regionWith } from './region.ts';
import { setupRegion, waiting } from './setup-region.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

const setup = (options?: Parameters<typeof setupRegion>[1]) => setupRegion(server(), options);

class Failing extends Migration {
  override up(): void {
    this.addSql('select 1 / 0');
  }
}

describe('the operator', () => {
  it('shows the state in PostgreSQL and Temporal of a Region, with the rights of its login', async () => {
    const { applySecret, applyRegion, readStatus } = await setup();
    await applySecret();
    await applyRegion();

    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe(currentMigration), waiting);
    const status = await readStatus();
    expect(status?.deliveries).toEqual({
      state: 'Running',
      underWay: 0,
      waiting: 0,
      overdue: 0,
      ledgerDifference: 0,
    });
    const statuses = status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason}`);
    expect(statuses).toEqual([
      'Ready True AllConditionsHold',
      'SchemaCurrent True MigrationsApplied',
      'TemporalReady True NamespaceAnswers',
      'LedgerBalanced True NoDifference',
      'Delivering True Sending',
      'KeysFresh Unknown NoSecretKeys',
    ]);
  });

  it('shows the status in the one line of `kubectl get region`', async () => {
    const { applySecret, applyRegion, readStatus, namespace } = await setup();
    await applySecret();
    await applyRegion();
    await vi.waitFor(async () => expect((await readStatus())?.schema?.applied).toBe(currentMigration), waiting);

    const [head = '', line = ''] = (await server().kubectl(['get', 'region', '-n', namespace])).split('\n');
    const columns = head.match(/\S+\s*/g) ?? [];
    let from = 0;
    const cells = columns.map((column) => {
      const [name, value] = [column.trim(), line.slice(from, from + column.length).trim()];
      from += column.length;
      return [name, value];
    });
    expect(cells.slice(0, -1)).toEqual([
      ['NAME', 'region'],
      ['REGION', 'us'],
      ['READY', 'True'],
      ['REASON', 'AllConditionsHold'],
      ['SCHEMA', currentMigration],
      ['DELIVERIES', 'Running'],
      ['BACKLOG', '0'],
      ['OVERDUE', '0'],
      ['DIFFERENCE', '0'],
    ]);
    expect(cells.at(-1)?.[0]).toBe('AGE');
  });

  it('creates the webhook of a WebhookSubscription from what the Region names', async () => {
    const { applySecret, applyRegion, make, declare, readReadiness } = await setup();
    const organizationId = await make.organization();
    await applySecret();
    const webhooks = { secretKeysRef: { name: 'org-api' } };
    await applyRegion({}, { allowedOrganizations: [organizationId], webhooks });
    await declare(organizationId);

    await vi.waitFor(async () => expect(await readReadiness()).toBe('Applied'), waiting);
  });

  it('holds the deliveries of the region as the Region declares, and leaves them alone without it', async () => {
    const { applySecret, applyRegion, readStatus, database } = await setup();
    await applySecret();
    const client = new pg.Client({ connectionString: database.ownerUrl });
    await client.connect();
    onTestFinished(() => client.end());
    const expectState = (state: string, reason: string) =>
      vi.waitFor(async () => {
        const { rows } = await client.query('select state from delivery_switch');
        expect(rows).toEqual([{ state }]);
        const status = await readStatus();
        expect(status?.conditions?.find(({ type }) => type === 'Delivering')?.reason).toBe(reason);
      }, waiting);

    await applyRegion({}, { delivery: { state: 'Draining' } });
    await expectState('draining', 'Draining');
    await client.query(`update delivery_switch set state = 'paused', changed_at = now() - interval '1 hour'`);
    await applyRegion({}, {});
    await expectState('paused', 'Paused');
    await applyRegion({}, { delivery: { state: 'Running' } });
    await expectState('running', 'Sending');
  });

  it('keeps a login whose new value cannot be used, and reports it by name', async () => {
    const { applySecret, database, namespace } = await setup();
    await applySecret();
    const seen: string[] = [];
    let clockMs = 0;
    const connections = new Connections({
      api: server().kubeConfig.makeApiClient(CoreV1Api),
      namespace,
      report: {
        onRead: (name) => void seen.push(`${name} read`),
        onChanged: (name) => void seen.push(`${name} changed`),
        onRejected: (name, reason) => void seen.push(`${name} rejected: ${reason}`),
        onForgotten: () => {},
      },
      now: () => (clockMs += 300_000),
    });
    onTestFinished(() => connections.close());
    const region = regionWith({ database: { secretRef: { name: 'org-api' } } });
    const first = await connections.openDatabase(region);
    const nextUser = `org_api_login_${randomBytes(4).toString('hex')}`;
    const next = Object.assign(new URL(database.urls.operator), {
      username: nextUser,
      password: 'the-next-password',
    }).href;
    const wrong = Object.assign(new URL(database.urls.operator), { password: 'hunter2' }).href;

    const rejected = ['postgresql://u:hunter%zz@127.0.0.1/org', 'postgresql://u:hunter2@db.example.com/org', wrong];
    for (const url of [...rejected, database.ownerUrl]) {
      await applySecret({ OPERATOR_DATABASE_URL: url });
      expect(await connections.openDatabase(region)).toBe(first);
    }
    await first.pool.query('select 1');
    expect(seen).toEqual([
      'DATABASE_URL read',
      expect.stringMatching(/^DATABASE_URL rejected: .*write it as %25/),
      expect.stringMatching(/^DATABASE_URL rejected: .*without TLS/),
      'DATABASE_URL rejected: cannot be used to connect to PostgreSQL (28P01)',
      'DATABASE_URL rejected: names a login without the role org_api_operator',
    ]);
    expect(seen.join()).not.toContain('hunter');
    const owner = new pg.Client({ connectionString: database.ownerUrl });
    await owner.connect();
    await ensureLogin(owner, { role: 'operator', server: parsePostgresUrl(next) });
    onTestFinished(async () => {
      await owner.query(`drop owned by ${nextUser}; drop role ${nextUser}`);
      await owner.end();
    });
    await applySecret({ OPERATOR_DATABASE_URL: next });
    expect(await connections.openDatabase(region)).not.toBe(first);
    expect(seen.at(-1)).toBe('DATABASE_URL changed');

    await connections.openDatabase({ ...region, spec: { ...region.spec, allowPlaintext: ['postgresql'] } });
    expect(seen.at(-1)).toBe('DATABASE_URL read');
  });

  it('sends Temporal’s API key only to the server in its own Secret, and no other value to any', async () => {
    let passedMs = 0;
    const t = await setup({ now: () => performance.now() + passedMs });
    const { namespace } = t;
    const stranger = await startTemporalFront(inject('temporalAddress'));
    const strangers = {
      TEMPORAL_ADDRESS: stranger.address,
      TEMPORAL_TLS_SERVER_NAME: frontName,
      'ca.crt': stranger.ca,
    };
    const { cert, key } = stranger.client;
    const stringData = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': stranger.ca };
    await server().apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'certificates', namespace },
      stringData,
    });
    const applySecret = (more: Record<string, string>) =>
      t.applySecret({ DATABASE_URL: t.database.ownerUrl, TEMPORAL_API_KEY: 'the-api-key', ...strangers, ...more });
    await applySecret({ TEMPORAL_ADDRESS: inject('temporalAddress') });
    const temporal = {
      address: stranger.address,
      namespace: testNamespace(),
      tlsServerName: frontName,
      caSecretRef: { name: 'certificates', key: 'ca.crt' },
      certificateSecretRef: { name: 'certificates', key: 'tls.crt' },
      certificateKeySecretRef: { name: 'certificates', key: 'tls.key' },
      apiKeySecretRef: { name: 'org-api', key: 'DATABASE_URL' },
    };
    const { group, version, plural } = kinds.Region;
    const of = { group, version, plural, namespace };
    const api = server().kubeConfig.makeApiClient(CustomObjectsApi);
    await api.createNamespacedCustomObject({ ...of, body: regionIn(namespace, { temporal }) });
    const patch = (body: object) =>
      api.patchNamespacedCustomObject(
        { ...of, name: 'region', body },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      );
    const readTemporal = async () =>
      (await t.readStatus())?.conditions?.find(({ type }) => type === 'TemporalReady') ?? { message: 'none' };
    const expectRejected = (name: string) =>
      vi.waitFor(async () => {
        const { message, ...condition } = await readTemporal();
        expect(message).toMatch(new RegExp(`^${name} in Secret org-api is not that of the Region`));
        expect(condition).toMatchObject({ status: 'Unknown', reason: 'ApiKeyOfOtherServer' });
      }, waiting);
    const applyNext = async (more: Record<string, string>) => {
      await applySecret(more);
      passedMs += 300_000;
      await patch({ spec: { allowedOrganizations: [randomUUID()] } }); // a pass now, and not in 15 s
    };

    await expectRejected('TEMPORAL_ADDRESS');
    // The stranger is on the path to the address, with a certificate of its own.
    await applyNext({ TEMPORAL_TLS_SERVER_NAME: 'temporal.of.the.region' });
    await expectRejected('TEMPORAL_TLS_SERVER_NAME');
    await applyNext({ 'ca.crt': makeCertificate({ subject: 'Authority of the region', isAuthority: true }).cert });
    await expectRejected('ca.crt');
    await patch({ spec: { temporal: { caSecretRef: null } } });
    await applyNext({});
    await expectRejected('ca.crt');
    expect([...stranger.apiKeys]).toEqual([]);

    await patch({ spec: { temporal: { caSecretRef: { name: 'certificates' } } } });
    const isAnswered = async () => expect(await t.readCondition('TemporalReady')).toBe('True NamespaceAnswers');
    await vi.waitFor(isAnswered, waiting);
    expect([...stranger.apiKeys]).toEqual(['the-api-key']);
  });

  it('seals everything again with the newest key when the Region says so, and keeps every secret', async () => {
    const { applySecret, applyRegion, readStatus, database, make } = await setup();
    const pool = openPool(database.ownerUrl, 2);
    const apps = await insertApps(pool, make);
    const { secret } = await make.webhook();
    await applySecret({ DATABASE_URL: database.ownerUrl, WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys });
    const webhooks = { secretKeysRef: { name: 'org-api' } };
    const expectKeys = (reason: string, version: number) =>
      vi.waitFor(async () => {
        const { conditions, secrets } = (await readStatus()) ?? {};
        expect(conditions?.find(({ type }) => type === 'KeysFresh')?.reason).toBe(reason);
        expect(secrets?.sealed).toEqual([{ version, count: 7 }]);
      }, waiting);

    await applyRegion({}, { webhooks });
    await expectKeys('OldKeySeals', 1);
    const databaseSecretRef = { name: 'org-api' };
    await applyRegion({}, { webhooks, sealing: { resealWith: 2, databaseSecretRef } });
    await expectKeys('NewestKeySeals', 2);

    expect(await openApps(pool, apps, newerSealingKeys)).toEqual(Array(6).fill(apps.secret));
    const { rows } = await pool.query(
      `select organization_id as "organizationId", webhook_id as "webhookId", sealed from webhook_secret`,
    );
    expect(rows.map(({ sealed, ...owner }) => unsealSecret(sealed, owner, newerSealingKeys))).toEqual([secret]);
  });

  it('creates the namespace of Temporal as the Region declares it, and follows the Region', async () => {
    const { applySecret, applyRegion, readStatus, temporal } = await setup();
    const namespace = `org-api-test-${crypto.randomUUID()}`;
    const { workflowService } = temporal;
    const readReason = async () =>
      (await readStatus())?.conditions?.find(({ type }) => type === 'TemporalReady')?.reason;
    const readRetention = async () =>
      Number((await workflowService.describeNamespace({ namespace })).config?.workflowExecutionRetentionTtl?.seconds);
    await applySecret();

    await applyRegion({ namespace });
    await vi.waitFor(async () => expect(await readReason()).toBe('NamespaceMissing'), waiting);
    await applyRegion({ namespace, retention: '48h' });
    await vi.waitFor(async () => expect(await readReason()).toBe('NamespaceAnswers'), waiting);
    expect(await readRetention()).toBe(48 * 3_600);

    // Temporal knows a new namespace for changes a moment after it shows it.
    const config = { workflowExecutionRetentionTtl: msToTs('3 days') };
    await vi.waitFor(() => workflowService.updateNamespace({ namespace, config }), waiting);
    await applyRegion({ namespace, retention: '47h' });
    await vi.waitFor(async () => expect(await readRetention()).toBe(47 * 3_600), waiting);
  });

  it('counts the active API keys that still need an older pepper, until none does', async () => {
    const { applySecret, applyRegion, readStatus, database, make } = await setup();
    const owner = new pg.Client({ connectionString: database.ownerUrl });
    await owner.connect();
    onTestFinished(() => owner.end());
    await make.apiKey();
    await applySecret();
    const expectPeppers = (peppers: object[]) =>
      vi.waitFor(async () => expect((await readStatus())?.secrets?.peppers).toEqual(peppers), waiting);

    await applyRegion();
    await expectPeppers([{ version: 1, count: 1 }]);
    await owner.query('update api_key set revoked_at = now(), number = null');
    await expectPeppers([]);
  });

  it('says in a condition and in one Event that a migration failed, until a later run succeeds', async () => {
    const { applySecret, applyRegion, readStatus, database, namespace } = await setup();
    await applySecret();
    await applyRegion();
    const readSchema = async () => (await readStatus())?.conditions?.find(({ type }) => type === 'SchemaCurrent');
    const expectReason = (reason: string) =>
      vi.waitFor(async () => expect((await readSchema())?.reason).toBe(reason), waiting);
    const run = (migrations: readonly NamedMigration[]) =>
      migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [], migrations });
    await expectReason('MigrationsApplied');

    for (let times = 0; times < 2; times += 1)
      await expect(run([...migrations, { name: '9999-failing', class: Failing }])).rejects.toMatchObject({
        code: '22012',
      });
    await expectReason('MigrationFailed');
    expect(await readSchema()).toMatchObject({
      status: 'False',
      message: expect.stringContaining('Migrations failed with the error code 22012: 9999-failing.'),
    });
    await run(migrations);
    await expectReason('MigrationsApplied');

    const { items } = await server().kubeConfig.makeApiClient(EventsV1Api).listNamespacedEvent({ namespace });
    const warnings = items.filter(({ type }) => type === 'Warning').map(({ reason }) => reason);
    expect(warnings.filter((reason) => reason === 'MigrationFailed')).toHaveLength(1);
  });

  it('names the Secret that is missing, and shows Temporal’s responses meanwhile', async () => {
    const { applyRegion, readStatus } = await setup();
    await applyRegion();

    await vi.waitFor(async () => expect((await readStatus())?.conditions).toBeDefined(), waiting);
    const conditions = (await readStatus())?.conditions ?? [];
    expect(conditions.find(({ type }) => type === 'SchemaCurrent')).toMatchObject({
      status: 'Unknown',
      reason: 'SecretMissing',
      message: 'There is no Secret org-api.',
    });
    expect(conditions.find(({ type }) => type === 'TemporalReady')?.status).toBe('True');
  });

  it('leaves fields of its status that another manager owns, names both, and keeps the others current', async () => {
    const { applySecret, applyRegion, readStatus, namespace } = await setup();
    await applySecret();
    await applyRegion({}, { delivery: { state: 'Running' } });
    const expectState = (state: string) =>
      vi.waitFor(async () => expect((await readStatus())?.deliveries?.state).toBe(state), waiting);
    await expectState('Running');
    const find = async (type: string) => (await readStatus())?.conditions?.find((one) => one.type === type);
    const balanced = await find('LedgerBalanced');
    const custom = server().kubeConfig.makeApiClient(CustomObjectsApi);
    const { group, version, plural, kind } = kinds.Region;
    const metadata = { name: 'region', namespace };
    const patchStatus = (status: object | null, strategy: PatchStrategy, options: object = {}) => {
      const body = { apiVersion: `${group}/${version}`, kind, metadata, status };
      const request = { group, version, plural, ...metadata, body, ...options };
      return custom.patchNamespacedCustomObjectStatus(request, setHeaderOptions('Content-Type', strategy));
    };
    const { observedGeneration: _, ...foreign } = { ...balanced, message: 'The auditor balances it.' };

    await patchStatus({ deliveries: { waiting: 7 }, conditions: [foreign] }, PatchStrategy.ServerSideApply, {
      fieldManager: 'auditor',
      force: true,
    });
    await applyRegion({}, { delivery: { state: 'Paused' } });
    await expectState('Paused');
    const message = [
      'The field manager auditor owns .status.conditions[type="LedgerBalanced"].message.',
      'The field manager auditor owns .status.deliveries.waiting.',
    ].join(' ');
    expect(await find('StatusApplied')).toMatchObject({ status: 'False', reason: 'FieldConflict', message });
    expect((await readStatus())?.deliveries?.waiting).toBe(7);
    expect(await find('LedgerBalanced')).toMatchObject({ status: 'True', message: 'The auditor balances it.' });
    const readNotes = async () => {
      const { items } = await server().kubeConfig.makeApiClient(EventsV1Api).listNamespacedEvent({ namespace });
      return items.filter(({ reason }) => reason === 'FieldConflict').map(({ note }) => note);
    };
    await vi.waitFor(async () => expect(await readNotes()).toEqual([message]), waiting);

    await patchStatus(null, PatchStrategy.MergePatch);
    await applyRegion({}, { delivery: { state: 'Running' } });
    await expectState('Running');
    expect(await find('StatusApplied')).toBeUndefined();
    expect((await find('LedgerBalanced'))?.message).toBe(balanced?.message);
    expect((await readStatus())?.deliveries?.waiting).toBe(0);
  });

  it('is live and ready while the API server answers, and says that it leads', async () => {
    const { readMetrics, fetchStatus } = await setup();

    await vi.waitFor(async () => expect(await fetchStatus('/readyz')).toBe(200), waiting);
    expect(await fetchStatus('/livez')).toBe(200);
    await vi.waitFor(async () => expect(await readMetrics()).toContain('is_leader 1'), waiting);
  });

  it('shows each condition of the Region as a metric', async () => {
    const { readMetrics, applySecret, applyRegion } = await setup();
    await applySecret();
    await applyRegion();
    const series = (type: string, status: string) =>
      `org_api_operator_region_condition{type="${type}",status="${status}"}`;

    await vi.waitFor(async () => {
      const page = await readMetrics();
      expect(page).toContain(`${series('LedgerBalanced', 'True')} 1`);
      expect(page).toContain(`${series('LedgerBalanced', 'False')} 0`);
      expect(page).toContain(`${series('KeysFresh', 'Unknown')} 1`);
      expect(page).toContain('org_api_operator_failures_total{kind="Region"} 0');
    }, waiting);
  });

  it('shows no condition and no rejected value of a Region that was deleted, so that its alert fires', async () => {
    const { readMetrics, applySecret, applyRegion, removeRegion } = await setup();
    await applySecret();
    await applyRegion();
    await vi.waitFor(async () => expect(await readMetrics()).toMatch(/region_condition\{type="Ready"/), waiting);

    await removeRegion();

    await vi.waitFor(async () => expect(await readMetrics()).not.toMatch(/region_condition\{/), waiting);
    expect(await readMetrics()).not.toMatch(/org_api_setting_rejected\{.*\} 1/);
  });

  it('changes nothing of a Region of another region, and says so', async () => {
    const { applySecret, applyRegion, readStatus, database } = await setup();
    await applySecret();
    await applyRegion({}, { region: 'ca', delivery: { state: 'Paused' } });

    await vi.waitFor(async () => {
      const [ready] = (await readStatus())?.conditions ?? [];
      expect(ready).toMatchObject({ type: 'Ready', status: 'Unknown', reason: 'OtherRegion' });
      expect(ready?.message).toBe('The Region is of ca, and the operator of us (REGION).');
    }, waiting);
    const pool = openPool(database.ownerUrl, 1);
    expect((await pool.query('select state from delivery_switch')).rows).toEqual([{ state: 'running' }]);
  });

  it.each(['retain', 'delete'])(
    'lets a WebhookSubscription with %s go that is deleted after its Region',
    async (reclaimPolicy) => {
      const t = await setup();
      const organizationId = await t.make.organization();
      await t.applySecret();
      const webhooks = { secretKeysRef: { name: 'org-api' } };
      await t.applyRegion({}, { webhooks, allowedOrganizations: [organizationId] });
      await t.declare(organizationId, { reclaimPolicy });
      await vi.waitFor(async () => expect(await t.readReadiness()).toBe('Applied'), waiting);

      await t.removeRegion();
      await t.removeSubscription();

      await expect.poll(() => t.readReadiness().catch((cause: { code: number }) => cause.code), waiting).toBe(404);
      const pool = openPool(t.database.ownerUrl, 1);
      const { rows } = await pool.query('select state, managed_by from webhook');
      expect(rows).toEqual([{ state: 'active', managed_by: `WebhookSubscription ${t.namespace}/orders` }]);
    },
  );

  it('is not live after 15 minutes in which the API server listed nothing, and is live after the next list', async () => {
    const proxy = await startTcpProxy({ host: '127.0.0.1', port: server().port });
    const kubeConfig = createKubeConfig(proxy.port, 'admin', 'admin-token');
    let passedMs = 0;
    const { fetchStatus } = await setup({ kubeConfig, now: () => performance.now() + passedMs });
    await vi.waitFor(async () => expect(await fetchStatus('/readyz')).toBe(200), waiting);

    await proxy.reject();
    passedMs = 14 * 60_000;
    expect(await fetchStatus('/livez')).toBe(200);
    passedMs = 15 * 60_000 + 1;
    expect(await fetchStatus('/livez')).toBe(503);

    await proxy.resume();
    await vi.waitFor(async () => expect(await fetchStatus('/livez')).toBe(200), waiting);
  });
});
