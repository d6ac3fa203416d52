/** Resealing everything with a newer key. The steps are in docs/operations/rotate-secrets.md. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { reseal, type SealingKeys } from '#domain/encryption/envelope.ts';
import { countSealed } from '#domain/resealing/count.ts';
import { sealedKinds } from '#domain/resealing/kinds.ts';
import { resealAll } from '#domain/resealing/reseal.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { secretRow, unsealSecret } from '#domain/webhooks/seal.ts';
import type { MadeWebhook } from '#test/make.ts';
import { insertApps, insertOldSecrets, newerSealingKeys, openApps, rotatedSealingKeys } from '#test/sealed-rows.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';

const timeout = 60_000;
const none = { resealed: 0, current: 0, unopened: [] };

describe('the sealed kinds', () => {
  it('include every sealed column of the schema', async () => {
    const { owner } = await setupDatabase();
    const { rows } = await owner.pool.query<{ name: string }>(
      `select table_name || '.' || column_name as name from information_schema.columns
       where table_schema = 'public' and data_type = 'bytea' and column_name like '%sealed%' order by 1`,
    );
    expect(rows.map(({ name }) => name)).toEqual(sealedKinds.map(({ table, column }) => `${table}.${column}`).sort());
  });
});

describe('resealing', () => {
  it('keeps every secret, and leaves none that needs the old key; a second time, it changes nothing', async () => {
    const t = await setupSealed();
    const apps = [await insertApps(t.pool, t.make), await insertApps(t.pool, t.make, rotatedSealingKeys)];
    const webhooks = [await t.make.webhook(), await t.make.webhook()];

    expect(await t.reseal()).toEqual([
      { ...none, table: 'webhook_secret', resealed: 2 },
      { ...none, table: 'webhook', resealed: 1, current: 1 },
      { ...none, table: 'second_factor', resealed: 1, current: 1 },
      { ...none, table: 'challenge', resealed: 1, current: 1 },
      { ...none, table: 'enrolment', resealed: 1, current: 1 },
      { ...none, table: 'mail', resealed: 1, current: 1 },
      { ...none, table: 'sso_provider', resealed: 1, current: 1 },
    ]);

    for (const one of apps) expect(await openApps(t.pool, one, newerSealingKeys)).toEqual(Array(6).fill(one.secret));
    for (const one of webhooks) expect(await t.open(one, newerSealingKeys)).toEqual([one.secret]);
    const before = await t.dump();
    const again = await t.reseal();
    expect(again.map(({ resealed, current, unopened }) => [resealed, current, unopened])).toEqual([
      ...[2, 2, 2, 2, 2, 2, 2].map((rows) => [0, rows, []]),
    ]);
    expect(await t.dump()).toEqual(before);
  });

  it('continues after an interruption, through many pages', { timeout }, async () => {
    const t = await setupSealed();
    const webhook = await t.make.webhook();
    const secrets = [webhook.secret, ...(await insertOldSecrets(t.pool, webhook, 2_100))];
    const end = new Error('the operator’s machine went to sleep');
    const stopped = resealAll(t.db, rotatedSealingKeys, () => {
      throw end;
    });
    await expect(stopped).rejects.toBe(end);
    expect((await countSealed(t.db, rotatedSealingKeys)).counts).toEqual([
      { table: 'webhook_secret', version: 1, rows: 1_101 },
      { table: 'webhook_secret', version: 2, rows: 1_000 },
    ]);
    const progress: number[] = [];
    const [done] = await resealAll(t.db, rotatedSealingKeys, (_, rows) => void progress.push(rows));
    expect(done).toEqual({ ...none, table: 'webhook_secret', resealed: 1_101, current: 1_000 });
    expect(progress).toEqual([1_000, 2_000]);
    expect((await t.open(webhook, newerSealingKeys)).sort()).toEqual(secrets.sort());
  });

  it('never undoes a rotation, a removal or a resealing between its read and its write', async () => {
    const t = await setupSealed();
    const orgId = await t.make.organization();
    const made = [await t.make.webhook({ orgId }), await t.make.webhook({ orgId }), await t.make.webhook({ orgId })];
    const [first, second, third] = made.toSorted((a, b) => (a.id < b.id ? -1 : 1)) as [
      MadeWebhook,
      MadeWebhook,
      MadeWebhook,
    ];
    // The write of another operator's reseal. Its row lock makes this one wait after it has read
    // everything.
    const [was = Buffer.alloc(0)] = await t.sealed(first);
    const theirs = reseal(was, secretRow({ organizationId: orgId, webhookId: first.id }), rotatedSealingKeys);
    const other = await t.pool.connect();
    await other.query('begin');
    await other.query('update webhook_secret set sealed = $1 where webhook_id = $2', [theirs, first.id]);
    const resealing = t.reseal();
    await vi.waitFor(async () => expect(await t.waiting()).toBe(1), { timeout: 20_000, interval: 20 });
    const request = { organizationId: orgId, webhookId: second.id, by: 'orgctl' } as const;
    const rotated = await rotateSecret(t.db, { ...request, overlapSeconds: 0 }, rotatedSealingKeys);
    await other.query('commit');
    other.release();

    expect((await resealing)[0]).toEqual({ ...none, table: 'webhook_secret', resealed: 1, current: 1 });
    expect(await t.sealed(first)).toEqual([theirs]);
    expect(await t.open(second, newerSealingKeys)).toEqual([rotated.secret]);
    expect(await t.open(third, newerSealingKeys)).toEqual([third.secret]);
  });

  it('reports what it cannot unseal by its ids, leaves that unchanged, and reseals the rest', async () => {
    const t = await setupSealed();
    const lost: SealingKeys = [{ version: 7, secret: randomBytes(32) }];
    const app = await insertApps(t.pool, t.make, lost);
    const [moved, good] = [await t.make.webhook(), await t.make.webhook()];
    await t.pool.query('update webhook_secret set sealed = (select sealed from webhook_secret where webhook_id = $1)', [
      good.id,
    ]);
    await t.pool.query(`update enrolment set totp_sealed = 'short'`);
    const before = await t.dump();

    const [secrets, ...apps] = await t.reseal();

    expect(secrets).toMatchObject({ resealed: 1, current: 0 });
    expect(secrets?.unopened).toEqual([
      {
        ids: { organizationId: moved.orgId, webhookId: moved.id, id: expect.any(String) },
        reason: 'not_authentic',
        version: 1,
      },
    ]);
    const { orgId: organizationId, personId, factorId, sessionId, mailId, providerId, webhookId } = app;
    expect(apps.map(({ unopened }) => unopened)).toEqual([
      [{ ids: { organizationId, webhookId }, reason: 'key_missing', version: 7 }],
      [{ ids: { id: factorId, personId }, reason: 'key_missing', version: 7 }],
      [{ ids: { sessionId }, reason: 'key_missing', version: 7 }],
      [{ ids: { organizationId, personId }, reason: 'malformed', version: null }],
      [{ ids: { id: mailId }, reason: 'key_missing', version: 7 }],
      [{ ids: { id: providerId, organizationId }, reason: 'key_missing', version: 7 }],
    ]);
    const changed = (await t.dump()).filter((row) => !before.includes(row));
    expect(changed).toHaveLength(1);
    expect(await countSealed(t.db, rotatedSealingKeys)).toEqual({
      newest: 2,
      counts: [
        { table: 'webhook_secret', version: 1, rows: 1 },
        { table: 'webhook_secret', version: 2, rows: 1 },
        { table: 'webhook', version: 7, rows: 1 },
        { table: 'second_factor', version: 7, rows: 1 },
        { table: 'challenge', version: 7, rows: 1 },
        { table: 'enrolment', version: null, rows: 1 },
        { table: 'mail', version: 7, rows: 1 },
        { table: 'sso_provider', version: 7, rows: 1 },
      ],
      unused: [],
      missing: [7],
    });
  });

  it('detects a newest key that was replaced under its own version', async () => {
    const t = await setupSealed();
    const app = await insertApps(t.pool, t.make, newerSealingKeys);
    const [, , factors] = await resealAll(t.db, [{ version: 2, secret: randomBytes(32) }, ...testSealingKeys]);
    expect(factors).toEqual({
      table: 'second_factor',
      resealed: 0,
      current: 0,
      unopened: [{ ids: { id: app.factorId, personId: app.personId }, reason: 'not_authentic', version: 2 }],
    });
  });

  it('skips expired secrets that wait to be erased', async () => {
    const t = await setupSealed();
    await insertApps(t.pool, t.make);
    const webhook = await t.make.webhook();
    await insertOldSecrets(t.pool, webhook, 3);
    await t.pool.query(
      `update webhook_secret set valid_until = now() - interval '1 second' where valid_until is not null`,
    );
    await t.pool.query(`update challenge set expires_at = now()`);
    await t.pool.query(`update enrolment set created_at = now() - interval '2 days', expires_at = now()`);
    expect((await t.reseal()).map(({ resealed }) => resealed)).toEqual([1, 1, 1, 0, 0, 1, 1]);
    expect(await countSealed(t.db, rotatedSealingKeys)).toMatchObject({ unused: [1], missing: [] });
  });
});

async function setupSealed() {
  const { owner, make } = await setupDatabase();
  const { pool } = owner;
  const sealed = async (webhook: MadeWebhook) => {
    const { rows } = await pool.query<{ sealed: Buffer }>(
      'select sealed from webhook_secret where organization_id = $1 and webhook_id = $2 order by id',
      [webhook.orgId, webhook.id],
    );
    return rows.map((row) => row.sealed);
  };
  return {
    pool,
    make,
    sealed,
    db: owner,
    reseal: () => resealAll(owner, rotatedSealingKeys),
    /** Returns the values of a webhook's secrets. */
    open: async (webhook: MadeWebhook, keys: SealingKeys) =>
      (await sealed(webhook)).map((one) =>
        unsealSecret(one, { organizationId: webhook.orgId, webhookId: webhook.id }, keys),
      ),
    /** Returns every sealed value as stored. */
    async dump(): Promise<string[]> {
      const { rows } = await pool.query<{ bytes: string }>(
        [...sealedKinds]
          .map(
            ({ table, column }) => `select encode(${column}, 'hex') as bytes from ${table} where ${column} is not null`,
          )
          .join(' union all '),
      );
      return rows.map(({ bytes }) => bytes).sort();
    },
    /** Returns how many statements wait for a lock in this database. */
    async waiting(): Promise<number> {
      const { rows } = await pool.query<{ count: number }>(
        `select count(*)::integer as count from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock'`,
      );
      return rows[0]?.count ?? 0;
    },
  };
}
