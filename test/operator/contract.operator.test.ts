/** Contract migrations by the operator: a real database, a real API server. */
import { BatchV1Api, CoreV1Api } from '@kubernetes/client-node';
import { Migration } from '@mikro-orm/migrations';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { migrate } from '#domain/db/migrate.ts';
import { migrations } from '#domain/db/migrations/index.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { pick, render } from '../charts/render.ts';
import { type ApiServer, startApiServer } from './api-server.ts';
import { arrangeRegion, waiting } from './arrange-region.ts';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

class DropTable extends Migration {
  override up(): void {
    this.addSql('drop table former_names');
  }
}

it('a contract migration waits for the pods of the version before, and then runs in one Job although the operator is killed', {
  timeout: 300_000,
}, async () => {
  const cronJob = pick(render({ release: 'org-api' }), 'CronJob');
  const { name } = cronJob.metadata;
  const t = await arrangeRegion(server, { migrations: { cronJob: name } });
  const { namespace, database, owner } = t;
  const batch = server.kubeConfig.makeApiClient(BatchV1Api);
  const listJobs = async () => (await batch.listNamespacedJob({ namespace })).items;
  const readSchema = async () => (await t.read()).status?.conditions?.find(({ type }) => type === 'SchemaCurrent');
  const run = (contract: boolean) =>
    migrate({
      owner: parsePostgresUrl(database.ownerUrl),
      logins: [],
      migrations: [...migrations, { name: '9999-drop-table', class: DropTable, isContract: true }],
      contract,
    });
  await server.apply({ ...cronJob, metadata: { ...cronJob.metadata, namespace } });
  const { labels } = cronJob.spec.jobTemplate.spec.template.metadata;
  const old = { name: 'api', image: 'org-api:before' };
  const metadata = { name: 'api-before', namespace, labels: { ...labels, 'app.kubernetes.io/instance': 'blue' } };
  await server.apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [old] } });
  await owner.pool.query('create table former_names (id int)');
  t.startOperator('one');
  await t.release({ migrations: { mode: 'Gate', cronJob: name } });
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready True AllConditionsHold'), waiting);

  expect(await run(false)).toMatchObject({ applied: [], pendingContract: ['9999-drop-table'] });
  await vi.waitFor(
    async () => expect(await readSchema()).toMatchObject({ status: 'True', reason: 'ContractPending' }),
    waiting,
  );
  expect((await readSchema())?.message).toContain('Pods of another image: api-before.');
  expect((await t.read()).status?.schema?.pending).toEqual(['9999-drop-table']);
  expect(await listJobs()).toEqual([]);

  await server.kubeConfig.makeApiClient(CoreV1Api).deleteNamespacedPod({
    namespace,
    name: 'api-before',
    gracePeriodSeconds: 0,
  });
  await vi.waitFor(async () => expect(await listJobs()).toHaveLength(1), waiting);
  t.kill('one');
  t.startOperator('two');
  await vi.waitFor(async () => expect((await readSchema())?.reason).toBe('ContractRunning'), waiting);
  const [job] = await listJobs();
  const [container] = job?.spec?.template.spec?.containers ?? [];
  const [expected] = cronJob.spec.jobTemplate.spec.template.spec.containers;
  expect(container).toMatchObject({ image: expected.image, command: expected.command, args: ['--contract'] });
  expect(job?.metadata?.ownerReferences).toMatchObject([{ kind: 'CronJob', name, controller: true }]);

  // No cluster runs the Job here; this does what its container does.
  expect(await run(true)).toMatchObject({ applied: ['9999-drop-table'], pendingContract: [] });
  await vi.waitFor(async () => expect((await readSchema())?.status).toBe('True'), waiting);
  await vi.waitFor(async () => expect((await t.read()).status?.schema).not.toHaveProperty('pending'), waiting);
  expect(await listJobs()).toHaveLength(1);
  const { rows } = await owner.pool.query(`select to_regclass('former_names') as found`);
  expect(rows).toEqual([{ found: null }]);
  expect(t.installed.listForbidden()).toEqual([]);
  expect(t.installed.listUsed()).toEqual(t.installed.allowed);
});

it('without the right to create Jobs nothing is lost, and the status says which right is missing', {
  timeout: 300_000,
}, async () => {
  const t = await arrangeRegion(server);
  t.startOperator('one');
  await migrate({
    owner: parsePostgresUrl(t.database.ownerUrl),
    logins: [],
    migrations: [...migrations, { name: '9999-drop-table', class: DropTable, isContract: true }],
  });
  await t.release({ migrations: { mode: 'Gate', cronJob: 'org-api-contract' } });

  await vi.waitFor(async () => expect(await t.conditions()).toContain('SchemaCurrent True ContractBlocked'), waiting);
  await vi.waitFor(async () => expect(await t.events()).toContain('ContractBlocked'), waiting);
});
