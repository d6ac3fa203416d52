/**
 * `orgctl secrets`: its responses, interruptions, and the values that it never prints. The steps
 * are in docs/operations/rotate-secrets.md.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { unsealSecret } from '#domain/webhooks/seal.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';
import {
  insertApps,
  insertOldSecrets,
  newerSealingKeys,
  newerWebhookSecretKeys,
  openApps,
  rotatedWebhookSecretKeys,
} from '#test/sealed-rows.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';

const timeout = 90_000;
const sealedTables = ['webhook_secret', 'webhook', 'second_factor', 'challenge', 'enrolment', 'mail', 'sso_provider'];

describe('orgctl secrets', () => {
  it('reseals everything for a newer key, reports it as tables and as JSON, and says when the old key can be removed', {
    timeout,
  }, async () => {
    const t = await setupSecrets();
    const app = await insertApps(t.owner.pool, t.make);
    const webhook = await t.make.webhook();
    expect((await t.status()).json()).toEqual({
      newest: 2,
      unused: [],
      missing: [],
      counts: sealedTables.map((kind) => ({ kind, version: 1, rows: 1 })),
    });
    const before = await t.orgctl('secrets', 'status');
    expect(before.stdout).toContain(
      '7 are sealed with an older key. Run orgctl secrets reseal.\nYou cannot remove a key yet.',
    );

    const calls = [await t.reseal('--json'), await t.reseal(), await t.reseal('--json')];

    expect(calls.map(({ code, stderr }) => [code, stderr])).toEqual(calls.map(() => [0, '']));
    expect(calls[0]?.json()).toEqual({ newest: 2, kinds: kinds({ resealed: 1, current: 0 }), unopened: [] });
    expect(calls[1]?.stdout).toMatch(/^signing secrets of webhooks +0 +1 +0$/m);
    expect(calls[2]?.json()).toEqual({ newest: 2, kinds: kinds({ resealed: 0, current: 1 }), unopened: [] });
    const after = [await t.status(), await t.orgctl('secrets', 'status')];
    expect(after[0]?.json()).toMatchObject({ newest: 2, unused: [1], missing: [] });
    expect(after[1]?.stdout).toContain('No row uses version 1. You can remove an old key when');
    expect(await openApps(t.owner.pool, app, newerSealingKeys)).toEqual(Array(6).fill(app.secret));
    expect(await t.open()).toEqual([webhook.secret]);
    for (const secret of [
      webhook.secret,
      app.secret,
      ...rotatedWebhookSecretKeys.split(/[,:]/).filter((one) => one.length > 9),
    ])
      expect(JSON.stringify([...calls, ...after])).not.toContain(secret);
    const { rows } = await t.owner.pool.query(`select action from audit_entry where action <> 'webhook.create'`);
    expect(rows).toEqual([]);
  });

  it('reports what cannot be unsealed with the remedy, without any secret, and exits with 1', { timeout }, async () => {
    const t = await setupSecrets();
    const webhook = await t.make.webhook();
    const lost = { version: 7, secret: randomBytes(32) };
    const app = await insertApps(t.owner.pool, t.make, [lost]);

    const calls = [await t.reseal('--json'), await t.reseal(), await t.status()];

    expect(calls.map(({ code }) => code)).toEqual([1, 1, 0]);
    const failure =
      '6 could not be unsealed and were not changed. ' +
      'Keep every older key, apply the remedies above, and run this command again.\n';
    expect(calls.slice(0, 2).map(({ stderr }) => stderr)).toEqual([failure, failure]);
    const remedy = expect.stringMatching(
      /^key version 7 is not in WEBHOOK_SECRET_KEYS: add it .*; if that is not possible, /,
    );
    const fields = { reason: 'key_missing', version: 7, remedy };
    expect(calls[0]?.json()).toMatchObject({
      kinds: [
        { kind: 'webhook_secret', resealed: 1, unopened: 0 },
        ...[1, 1, 1, 1, 1, 1].map((unopened) => ({ resealed: 0, unopened })),
      ],
      unopened: [
        { kind: 'webhook', ids: { organizationId: app.orgId, webhookId: app.webhookId }, ...fields },
        { kind: 'second_factor', ids: { id: app.factorId, personId: app.personId }, ...fields },
        { kind: 'challenge', ids: { sessionId: app.sessionId }, ...fields },
        { kind: 'enrolment', ids: { organizationId: app.orgId, personId: app.personId }, ...fields },
        { kind: 'mail', ids: { id: app.mailId }, ...fields },
        { kind: 'sso_provider', ids: { id: app.providerId, organizationId: app.orgId }, ...fields },
      ],
    });
    expect(calls[1]?.stdout).toContain(`id ${app.factorId}, personId ${app.personId}`);
    expect(calls[2]?.json()).toMatchObject({ missing: [7], unused: [1] });
    for (const secret of [webhook.secret, app.secret, lost.secret.toString('base64')])
      expect(JSON.stringify(calls)).not.toContain(secret);

    const found = await t.orgctlWith({
      WEBHOOK_SECRET_KEYS: `${rotatedWebhookSecretKeys},7:${lost.secret.toString('base64')}`,
    });
    expect(found).toMatchObject({ code: 0, stderr: '' });
    expect(await openApps(t.owner.pool, app, newerSealingKeys)).toEqual(Array(6).fill(app.secret));
  });

  it('prints its progress, and continues after a kill when it is run again', { timeout }, async () => {
    const t = await setupSecrets();
    const webhook = await t.make.webhook();
    const secrets = [webhook.secret, ...(await insertOldSecrets(t.owner.pool, webhook, 1_500))];
    const holder = await t.owner.pool.connect();
    await holder.query('begin');
    // The last row of the second page, where the reseal waits.
    await holder.query(
      'select from webhook_secret where id = (select id from webhook_secret order by id desc limit 1) for update',
    );
    const child = spawn(process.execPath, ['apps/orgctl/main.ts', 'secrets', 'reseal'], {
      env: { ...childEnvironment, ...t.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let progress = '';
    child.stderr.on('data', (chunk: Buffer) => {
      progress += chunk;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    await vi.waitFor(async () => expect(await t.countNewer()).toBe(1_500), { timeout: 60_000, interval: 50 });
    child.kill('SIGKILL');
    await ended;
    await holder.query('rollback');
    holder.release();
    expect(progress).toBe('signing secrets of webhooks: 1000 checked so far\n');

    const again = await t.reseal('--json');

    expect(again).toMatchObject({ code: 0, stderr: progress });
    expect(await t.countNewer()).toBe(1_501);
    expect((await t.open()).sort()).toEqual(secrets.sort());
    expect((await t.status()).json()).toMatchObject({ unused: [1], counts: [{ version: 2, rows: 1_501 }] });
  });

  it('requires WEBHOOK_SECRET_KEYS, and reports what remains when a server goes down', { timeout }, async () => {
    const t = await setupSecrets();
    const { WEBHOOK_SECRET_KEYS: _keys, ...without } = t.env;
    for (const verb of ['reseal', 'status'])
      expect(await callOrgctl(without, ['secrets', verb])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('WEBHOOK_SECRET_KEYS is missing'),
      });
    await t.make.webhook();
    const holder = await t.owner.pool.connect();
    await holder.query('begin');
    await holder.query('select from webhook_secret for update');
    const called = t.reseal('--json');
    await vi.waitFor(
      async () => {
        const { rowCount } = await t.owner.pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock'`,
        );
        expect(rowCount).toBe(1);
      },
      { timeout: 30_000, interval: 50 },
    );
    await holder.query('rollback');
    holder.release();
    expect(await called).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /PostgreSQL ended the connection.*Secrets that were resealed before stay resealed\. Run the command again\.\n$/,
      ),
    });
    expect(await t.reseal()).toMatchObject({ code: 0, stderr: '' });
  });

  it('explains its options in its help', { timeout }, async () => {
    const env = { ORG_API_STATE: temporaryFolder() };
    expect((await callOrgctl(env, ['--help'])).stdout).toContain('  secrets ');
    const help = await callOrgctl(env, ['secrets', '--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const verb of ['reseal', 'status']) expect(help.stdout).toContain(`orgctl secrets ${verb}\n`);
  });
});

/** The value of `kinds` in the response when every table has the same count. */
const kinds = (counts: { resealed: number; current: number }) =>
  sealedTables.map((kind) => ({ kind, ...counts, unopened: 0 }));

/** An installation with a newer key added. */
async function setupSecrets() {
  const t = await setupOrgctl();
  const env = { ...t.env, WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys };
  expect(rotatedWebhookSecretKeys).toBe(`${newerWebhookSecretKeys},${testWebhookSecretKeys}`);
  const orgctl = (...args: string[]) => callOrgctl(env, args);
  return {
    ...t,
    env,
    orgctl,
    orgctlWith: (settings: Record<string, string>) => callOrgctl({ ...env, ...settings }, ['secrets', 'reseal']),
    reseal: (...args: string[]) => orgctl('secrets', 'reseal', ...args),
    status: () => orgctl('secrets', 'status', '--json'),
    /** Returns the values of all signing secrets, opened with the newer key only. */
    async open() {
      const { rows } = await t.owner.pool.query<{ organizationId: string; webhookId: string; sealed: Buffer }>(
        'select organization_id as "organizationId", webhook_id as "webhookId", sealed from webhook_secret',
      );
      return rows.map(({ sealed, ...owner }) => unsealSecret(sealed, owner, newerSealingKeys));
    },
    async countNewer() {
      const { rows } = await t.owner.pool.query<{ count: number }>(
        'select count(*)::integer as count from webhook_secret where get_byte(sealed, 2) = 2',
      );
      return rows[0]?.count;
    },
  };
}
