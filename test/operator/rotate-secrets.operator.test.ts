/**
 * docs/operations/rotate-secrets.md, with its own commands in a shell, against a real API server that
 * has the Secrets, under running apps that read them.
 */
import { expect, it, vi } from 'vitest';
import { makeCertificate } from '#test/certificates.ts';
import { api as apiLabels, worker as workerLabels } from '../charts/alerts-data.ts';
import { expectQuietAlerts, expectQuietOperator } from '../operations/alerts.ts';
import { carryOut, readSection, type Step, without } from '../operations/page.ts';
import { arrangeRotation, patient } from './rotation.ts';
import { shareApiServer } from './share-api-server.ts';

const page = 'rotate-secrets.md';

/** The settings with a login, and the names of their first logins. */
const logins = {
  API_DATABASE_URL: 'org_api_api',
  WORKER_DATABASE_URL: 'org_api_work',
  CONSOLE_DATABASE_URL: 'org_api_cons',
  OPERATOR_DATABASE_URL: 'org_api_status',
  PLATFORM_DATABASE_URL: 'org_api_plat',
};

const server = shareApiServer();

it('rotates every secret while a key reads and events are delivered, and ends with all alerts quiet', {
  timeout: 900_000,
}, async () => {
  const t = await arrangeRotation(server());
  const setSecret: Step = [/^set_secret /, t.change];
  const pod: Step = [/^kubectl .*(pod orgctl|pod\/orgctl|-f orgctl\.yaml)/, t.recreatePod];
  await carryOut(readSection(page, 'Before you start'), [[/^(secret|set_secret)\(\)/, t.shell]]);
  await t.expectWorking();

  const versions: unknown[] = [];
  await carryOut(readSection(page, 'KEY_PEPPERS'), [
    setSecret,
    [
      /^select /,
      async (sql) => {
        await t.replaceKey();
        versions.push(...(await t.owner.pool.query(sql)).rows);
      },
    ],
    [/^kubectl .* get region /, t.shell],
  ]);
  expect(versions).toEqual([{ pepper_version: 2, count: '1' }]);
  await t.expectWorking();

  await carryOut(readSection(page, 'KEY_TAG_SECRETS'), [
    [
      /^set_secret /,
      async (command) => {
        if (command.includes('cut')) await t.replaceKey();
        await t.change(command);
      },
    ],
  ]);
  await t.expectWorking();

  await carryOut(readSection(page, 'WEBHOOK_SECRET_KEYS'), [
    setSecret,
    pod,
    [/^orgctl secrets (reseal|status)$/, t.shell],
    [/^# us-values\.yaml/, without('orgctl seals')],
  ]);
  await t.expectWorking();

  for (const [setting, login] of Object.entries(logins)) {
    await carryOut(readSection(page, 'The logins of the apps'), [
      [/^export SETTING=/, () => t.shell(`export SETTING=${setting} LOGIN=${login}_2`)],
      [/^(NEXT=|kubectl .* (create|delete) secret )/, t.shell],
      pod,
      [/exec orgctl -- node apps\/migrate\/main\.ts$/, t.migrate],
      [/^kubectl .* patch secret org-api-us /, t.change],
      [
        /^revoke all /,
        async (sql) => {
          await t.endConnections(login); // which end within 15 minutes
          for (const statement of sql.split('\n')) await t.asOwner(statement.replaceAll('org_api_api', login));
        },
      ],
    ]);
    await t.expectWorking();
  }

  await carryOut(readSection(page, 'DATABASE_URL'), [
    [/^NEW=/, t.shell],
    [/^kubectl .* patch secret org-api-us-owner /, t.changeOwnersPassword],
    [/^set_secret /, t.shell],
  ]);
  await t.recreatePod();
  await t.migrate();

  await carryOut(readSection(page, 'REDIS_URL'), [
    [/^(OLD|NEW)=/, t.shell],
    [/^printf .*acl setuser default .* valkey-cli /, t.shell],
    setSecret,
    [/^kubectl .* patch secret valkey-us-users /, t.shell],
  ]);
  await t.endRedisConnections();
  await t.expectWorking();

  t.front.letIn(['first', 'second']);
  await t.shell('TEMPORAL_API_KEY=second');
  await carryOut(readSection(page, "Temporal's API key"), [[/^kubectl .* patch secret /, t.changeTemporalSecret]]);
  await vi.waitFor(() => expect(t.front.apiKeys).toContain('second'), patient);
  await rotateCertificates(t);

  const create = 'orgctl probe create --url http://10.96.0.81:8090/ --secret-name $NAME-probe';
  await t.shell(`${create} | kubectl -n $NS apply -f -`);
  const before = await t.readSecret('us-org-api-probe');
  let printed = '';
  await carryOut(readSection(page, "The probe's key and secret"), [
    [/^orgctl probe create .* --renew yes/, t.shell],
    [
      /^kubectl .* get secret /,
      async (command) => {
        printed = await t.shell(command);
      },
    ],
    [/^helm (upgrade|test) /, without('the chart’s tests and the cluster test run the probe')],
  ]);
  const after = await t.readSecret('us-org-api-probe');
  expect(after).toMatchObject({ organizationId: before.organizationId, webhookId: printed });
  expect(after.webhookSecret).not.toBe(before.webhookSecret);
  const readWith = async (key = '') => (await t.api.get(`/v1/orgs/${after.organizationId}`, { key })).status;
  expect([await readWith(before.key), await readWith(after.key)]).toEqual([401, 200]);

  await t.shell('kubectl -n $NS create secret generic org-api-us-backup --from-literal=ACCESS_KEY_ID=first');
  await t.shell('BACKUP_KEY_ID=second BACKUP_SECRET=new');
  await carryOut(readSection(page, 'The key of the backups'), [
    [/^kubectl .* patch secret /, t.shell],
    [/^kubectl .* get backup/, without('CloudNativePG does not run')],
  ]);
  expect(await t.readSecret('org-api-us-backup')).toEqual({ ACCESS_KEY_ID: 'second', ACCESS_SECRET_KEY: 'new' });

  await vi.waitFor(async () => expect(await t.isRegionReady()).toBe(true), patient);
  await expectQuietAlerts([
    { labels: apiLabels, metricsUrl: t.api.metricsUrl },
    { labels: workerLabels, metricsUrl: t.metricsOfWorker() },
  ]);
  await expectQuietOperator(t.metricsOfOperator);
});

/**
 * Replaces the authority of Temporal's certificates on both sides, by the page: each side trusts both
 * first, and then the new one alone. A pair that does not fit is rejected by name, and the old one stays.
 */
async function rotateCertificates(t: Awaited<ReturnType<typeof arrangeRotation>>): Promise<void> {
  const rotate = (restart: () => Promise<void> = t.restartWorker) =>
    carryOut(readSection(page, "Temporal's certificates"), [
      [/^kubectl .* patch secret org-api-us-temporal /, t.changeTemporalSecret],
      [/^# us-values\.yaml/, without('the worker is started again')],
      [/^helm upgrade /, restart],
    ]);
  const { authority, useAuthorities, letIn } = t.front;
  const next = makeCertificate({ subject: 'The next authority', isAuthority: true });
  const { cert, key } = makeCertificate({ subject: 'The next client', issuer: next });
  useAuthorities(authority, [authority, next]);
  t.writeCertificates({ 'ca.crt': authority.cert + next.cert, 'tls.crt': cert, 'tls.key': key });
  await rotate();
  letIn(['second']);
  useAuthorities(next, [next]);
  await t.expectCallsToTemporal();
  await t.expectWorking();

  t.writeCertificates({ 'ca.crt': next.cert });
  await rotate();
  await t.expectCallsToTemporal();
  await t.expectWorking();

  t.writeCertificates({ 'tls.key': makeCertificate({ subject: 'Another' }).key });
  await rotate(() =>
    expect(t.restartWorker()).rejects.toThrow('TEMPORAL_TLS_KEY is not the private key of TEMPORAL_TLS_CERT'),
  );
  await vi.waitFor(async () => expect(await t.isRejectedByOperator()).toBe(true), patient);
  await t.expectWorking();
  t.writeCertificates({ 'tls.key': key });
  await rotate();
  await vi.waitFor(async () => expect(await t.isRejectedByOperator()).toBe(false), patient);
}
