/** The part of docs/operations/upgrade.md about contract migrations, with its own commands and the chart's Jobs. */
import { cpSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ApiServer, startApiServer } from '#test/api-server.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { migrationsWith, repository } from '../cluster/images.ts';
import { carryOut, readSection } from '../operations/page.ts';
import { installRegion } from './guide-region.ts';
import { runJob } from './run-job.ts';

const name = '9999-drop-column';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

it('a contract migration waits in the Job of an upgrade, and the Job that the guide asks for runs it once', {
  timeout: 300_000,
}, async () => {
  const root = copyWithContractMigration();
  const t = await installRegion(server, root);
  await t.owner.pool.query('alter table organization add column nickname text');
  const { settings } = mountSecret(t.secrets);
  const jobOf = async (purpose: string) =>
    new RegExp(`us-org-api-${purpose}-\\w+`).exec(await t.shell('kubectl -n $NS get jobs -o name'))?.[0] ?? '';
  const run = async (purpose: string) =>
    runJob(server, { namespace: t.namespace, name: await jobOf(purpose), settings, root });
  const hasColumn = async () =>
    (await t.rows(`select from information_schema.columns where column_name = 'nickname'`)).length > 0;
  const log = await run('migrate');
  await t.waitForReason('SchemaCurrent', 'ContractPending');
  expect(await hasColumn()).toBe(true);

  await carryOut(readSection('upgrade.md', 'Run contract migrations'), [
    [/^# us-values\.yaml/, t.addValues],
    [
      /^kubectl -n \$NS logs .* --tail=2$/,
      async (command) => {
        const labels = /-l (\S+)/.exec(command)?.[1];
        expect(await t.shell(`kubectl -n $NS get jobs -l ${labels} -o name`)).toContain(await jobOf('migrate'));
        expect(log.trim().split('\n').slice(-2).join('\n')).toContain(name);
      },
    ],
    [
      /^helm upgrade \$RELEASE /,
      async (command) => {
        await t.runHelm(command);
        await run('contract');
      },
    ],
  ]);

  expect(await hasColumn()).toBe(false);
  await t.waitForReason('SchemaCurrent', 'MigrationsApplied');
  await t.waitForReason('Ready', 'AllConditionsHold');
  await t.expectQuietOperator();
});

/** A version with one more migration, which removes a column that the version before needs. */
function copyWithContractMigration(): string {
  const root = temporaryFolder();
  for (const one of ['apps', 'workflows', 'package.json'])
    cpSync(path.join(repository, one), path.join(root, one), { recursive: true });
  symlinkSync(path.join(repository, 'node_modules'), path.join(root, 'node_modules'));
  const statements = ['alter table organization drop column nickname'];
  for (const { target, write } of migrationsWith({ name, statements, isContract: true }))
    write(path.join(root, path.relative('/app', target)));
  return root;
}
