/** Values are bound, so no server log contains them, and errors quote none. */
import { randomUUID } from 'node:crypto';
import { LockMode } from '@mikro-orm/core';
import { expect, it } from 'vitest';
import { allOf, arrayOf, literal, numbered, runStatement, sql } from '#domain/db/statement.ts';
import { ApiKey } from '#domain/keys/api-key.entity.ts';
import { Webhook, WebhookSecret } from '#domain/webhooks/webhook.entity.ts';
import { describeError } from '#runtime/log.ts';
import { setupDatabase } from '#test/setup.ts';

/** Returns all properties of an error that a program could print. */
function textsOf(error: unknown): string {
  if (!(error instanceof Error)) throw new Error('the statement was accepted');
  const own = Object.getOwnPropertyNames(error).map((name) => String(error[name as keyof Error]));
  return [String(error), ...own, JSON.stringify(error), JSON.stringify(describeError(error))].join('\n');
}

it('a statement binds each value, each element of a list, and inserts a nested statement in place', async () => {
  const { owner } = await setupDatabase();
  const em = owner.orm.em.fork();
  const at = new Date('2026-01-02T03:04:05.678Z');
  const hostile = `'); drop table person; -- ? ?? $1 \\`;
  const conditions = allOf([sql`v.text = ${hostile}`, sql`v.number in (${[1, 2, 3]})`]);
  const rows = await runStatement<Record<string, unknown>>(
    em,
    sql`select v.*, ${at}::timestamptz = v.at as same, ${{ a: hostile }}::jsonb ->> 'a' as json,
      ${Buffer.from('00ff', 'hex')}::bytea as bytes
      from (select ${hostile}::text as text, ${2}::int as number, ${at}::timestamptz as at,
        ${null}::text as nothing) v where ${conditions}`,
  );
  expect(rows).toMatchObject([
    { text: hostile, number: 2, nothing: null, same: true, json: hostile, bytes: Buffer.from('00ff', 'hex') },
  ]);
});

it('a statement binds an array, numbered values and literals with any character', async () => {
  const { owner } = await setupDatabase();
  const em = owner.orm.em.fork();
  const texts = ['a', `'); -- ? ?? $1 \\ "{,}`, ''];
  expect(
    await runStatement(em, sql`select ${arrayOf(texts)}::text[] as texts, ${literal(texts[1] ?? '')} as text`),
  ).toEqual([{ texts, text: texts[1] }]);
  expect(await runStatement(em, sql`select 1 as n limit ${literal(1)} offset ${literal(0)}`)).toEqual([{ n: 1 }]);
  expect(await runStatement(em, numbered('select $2::text as b, $1::text[] as a, $2 as c', [texts, 'x']))).toEqual([
    { a: texts, b: 'x', c: 'x' },
  ]);
});

it('an entity’s values never appear in the text of a statement', async () => {
  const { owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const fingerprint = Buffer.alloc(32, 0xa5);
  await owner.orm.em.fork().transactional(async (tx) => {
    const key = tx.create(ApiKey, {
      id: randomUUID(),
      organizationId: orgId,
      creatorId: userId,
      label: 'quartz-heron',
      fingerprint,
      pepperVersion: 1,
      hint: 'aln_us_quartz',
      scopes: ['org.read'],
      createdAt: new Date(),
      expiresAt: null,
      revokedAt: null,
      number: 1,
      predecessorId: null,
    });
    const seen = async () =>
      (
        await owner.pool.query<{ query: string }>(
          `select query from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`,
        )
      ).rows.map(({ query }) => query);
    await tx.flush();
    const [insert = ''] = await seen();
    expect(insert).toMatch(/^insert into "api_key" .*\$1/s);
    key.label = 'heron-quartz';
    await tx.flush();
    const [update = ''] = await seen();
    expect(update).toMatch(/^update "api_key" set "label" = \$1/);
    for (const text of [insert, update]) expect(text).not.toMatch(/quartz|a5a5/);
  });
});

it('an error quotes no fingerprint, sealed secret, name or value', async () => {
  const { owner, make } = await setupDatabase();
  const creator = await make.member({ name: 'Quartz Heron' });
  const { id } = await make.apiKey({ creator });
  const webhook = await make.webhook({ orgId: creator.orgId });
  const key = await owner.orm.em.fork().findOneOrFail(ApiKey, { id });
  const secret = await owner.orm.em.fork().findOneOrFail(WebhookSecret, { webhookId: webhook.id });
  const em = () => owner.orm.em.fork();
  const copy = (fields: object) =>
    em().transactional(async (tx) => void tx.create(ApiKey, { ...(structuredClone({ ...key }) as ApiKey), ...fields }));
  const seal = (fields: object) =>
    em().transactional(async (tx) => void tx.create(WebhookSecret, { ...structuredClone({ ...secret }), ...fields }));
  const print = Buffer.alloc(32, 0xa5);
  const refused: [string, () => Promise<unknown>][] = [
    ['api_key_fingerprint_unique', () => copy({ id: randomUUID(), number: 2, label: 'Quartz Heron' })],
    ['api_key_number_of_25', () => copy({ id: randomUUID(), number: 99, fingerprint: print, label: 'Quartz Heron' })],
    [
      'api_key_predecessor',
      () => copy({ id: randomUUID(), number: 2, predecessorId: randomUUID(), fingerprint: print }),
    ],
    ['webhook_secret_webhook', () => seal({ id: randomUUID(), webhookId: randomUUID(), validUntil: new Date() })],
    ['webhook_secret_pkey', () => seal({})],
    // not null
    ['23502', () => runStatement(em(), sql`insert into webhook_secret (sealed) values (${secret.sealed})`)],
    ['23502', () => runStatement(em(), sql`update membership set name = null, email = 'Quartz'`)],
    // The server's message quotes these.
    ['22P02', () => runStatement(em(), sql`select ${'Quartz Heron'}::uuid`)],
    ['22P02', () => runStatement(em(), sql`select ${`{"Quartz": ${key.fingerprint.toString('hex')}`}::jsonb`)],
  ];
  const values = [key.fingerprint, print, secret.sealed];
  for (const [reason, change] of refused) {
    const text = await change().then(() => '', textsOf);
    expect(text).toContain(reason);
    expect(text).not.toMatch(/quartz|heron/i);
    for (const value of values)
      for (const form of [value.toString('hex'), value.toString('base64'), value.subarray(4, 12).toString('hex')])
        expect(text).not.toContain(form);
  }
});

it('an entity that is locked for writing blocks a second writer, and no row that refers to it', async () => {
  const { owner, make } = await setupDatabase();
  const { id, orgId } = await make.webhook();
  const professional = await make.member({ orgId });
  const lock = { lockMode: LockMode.PESSIMISTIC_WRITE };
  await owner.orm.em.fork().transactional(async (tx) => {
    await tx.findOneOrFail(Webhook, { organizationId: orgId, id }, lock);
    // The trigger of the grant inserts a delivery that refers to the webhook.
    const { id: grantId } = await make.grant({ professional });
    expect(grantId).toBeDefined();
    const second = owner.orm.em.fork().transactional(async (other) => {
      await runStatement(other, sql`set local lock_timeout = '100ms'`);
      await other.findOneOrFail(Webhook, { organizationId: orgId, id }, lock);
    });
    await expect(second).rejects.toMatchObject({ code: '55P03' });
  });
});

it('a query that is streamed through MikroORM fails, because its values would be in the text', async () => {
  const { owner } = await setupDatabase();
  const rows = owner.orm.em.fork().createQueryBuilder(ApiKey).where({ label: 'a secret' }).stream();
  await expect(rows[Symbol.asyncIterator]().next()).rejects.toThrow('cannot be streamed');
});
