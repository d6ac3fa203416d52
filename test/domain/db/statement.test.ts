/** Values are bound, so no server log contains them, and errors quote none. */
import { randomUUID } from 'node:crypto';
import { LockMode } from '@mikro-orm/core';
import { CompiledQuery, sql } from 'kysely';
import { expect, it } from 'vitest';
import { joinConditions } from '#domain/db/statement.ts';
import { ApiKey } from '#domain/keys/api-key.entity.ts';
import { Webhook, WebhookSecret } from '#domain/webhooks/webhook.entity.ts';
import { describeError } from '#runtime/log.ts';
import { setupDatabase } from '#test/setup.ts';

/** Returns all properties of an error that a program could print. */
function listTexts(error: unknown): string {
  if (!(error instanceof Error)) throw new Error('the statement was accepted');
  const own = Object.getOwnPropertyNames(error).map((name) => String(error[name as keyof Error]));
  return [String(error), ...own, JSON.stringify(error), JSON.stringify(describeError(error))].join('\n');
}

it('a statement binds a value of any type, and inserts a nested statement in place', async () => {
  const { owner } = await setupDatabase();
  const at = new Date('2026-01-02T03:04:05.678Z');
  const hostile = `'); drop table person; -- ? ?? $1 \\ "{,}`;
  const texts = ['a', hostile, '', null];
  const conditions = joinConditions([sql`v.text = ${hostile}`, null, sql`v.number = any (${[1, 2, 3]}::int[])`]);
  const rows = await owner.query(
    sql`select v.*, ${texts}::text[] as texts, ${[]}::uuid[] as none,
        ${[at, at]}::timestamptz[] = array[v.at, v.at] as times,
        ${[[1, 2], [3, 4]]}::int[] as nested, ${[Buffer.from('00ff', 'hex')]}::bytea[] as blobs,
        ${{ a: hostile, b: [1, null] }}::jsonb as json, ${JSON.stringify([hostile])}::jsonb ->> 0 as element,
        ${'{"a": 1}'}::jsonb ? ${'a'} as "hasKey",
        ${2n ** 62n}::bigint::text as big, ${true}::boolean as yes, ${-1.5}::float8 as number8,
        ${'2026-03-29T01:30:00+05:30'}::timestamptz = ${new Date('2026-03-28T20:00:00Z')}::timestamptz as "sameZone",
        ${new Date('1890-01-01T00:00:00.001Z')}::timestamptz = ${'1890-01-01T00:00:00.001Z'}::timestamptz as "sameEarly"
      from (select ${hostile}::text as text, ${2}::int as number, ${at}::timestamptz as at,
        ${Buffer.from('00ff', 'hex')}::bytea as bytes, ${null}::text as nothing) v where ${conditions}`,
  );
  expect(rows).toEqual([
    {
      text: hostile,
      number: 2,
      at: expect.anything(),
      bytes: Buffer.from('00ff', 'hex'),
      nothing: null,
      texts,
      none: [],
      times: true,
      nested: [
        [1, 2],
        [3, 4],
      ],
      blobs: [Buffer.from('00ff', 'hex')],
      json: { a: hostile, b: [1, null] },
      element: hostile,
      hasKey: true,
      big: String(2n ** 62n),
      yes: true,
      number8: -1.5,
      sameZone: true,
      sameEarly: true,
    },
  ]);
});

it('a literal is in the text, with any character, and a text may number its values', async () => {
  const { owner } = await setupDatabase();
  const texts = ['a', `'); -- ? ?? $1 \\ "{,}`, ''];
  expect(await owner.query(sql`select ${sql.lit(texts[1] ?? '')} as text`)).toEqual([{ text: texts[1] }]);
  expect(await owner.query(sql`select 1 as n limit ${sql.lit(1)} offset ${sql.lit(0)}`)).toEqual([{ n: 1 }]);
  const numbered = CompiledQuery.raw('select $2::text as b, $1::text[] as a, $2 as c', [texts, 'x']);
  expect(await owner.query(numbered)).toEqual([{ a: texts, b: 'x', c: 'x' }]);
});

it('an entity’s values never appear in the text of a statement', async () => {
  const { owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const fingerprint = Buffer.alloc(32, 0xa5);
  await owner.change(async (tx) => {
    const key = tx.create(ApiKey, {
      id: randomUUID(),
      organizationId: orgId,
      creatorId: userId,
      label: 'quartz-heron',
      description: '',
      allowedAddresses: ['203.0.113.0/24'],
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
  const key = await owner.findOneOrFail(ApiKey, { id });
  const secret = await owner.findOneOrFail(WebhookSecret, { webhookId: webhook.id });
  const copy = (fields: object) =>
    owner.change(async (tx) => void tx.create(ApiKey, { ...(structuredClone({ ...key }) as ApiKey), ...fields }));
  const seal = (fields: object) =>
    owner.change(async (tx) => void tx.create(WebhookSecret, { ...structuredClone({ ...secret }), ...fields }));
  const print = Buffer.alloc(32, 0xa5);
  const rejected: [string, () => Promise<unknown>][] = [
    ['api_key_fingerprint_unique', () => copy({ id: randomUUID(), number: 2, label: 'Quartz Heron' })],
    ['api_key_number_of_25', () => copy({ id: randomUUID(), number: 99, fingerprint: print, label: 'Quartz Heron' })],
    [
      'api_key_predecessor',
      () => copy({ id: randomUUID(), number: 2, predecessorId: randomUUID(), fingerprint: print }),
    ],
    ['webhook_secret_webhook', () => seal({ id: randomUUID(), webhookId: randomUUID(), validUntil: new Date() })],
    ['webhook_secret_pkey', () => seal({})],
    // not null
    ['23502', () => owner.query(sql`insert into webhook_secret (sealed) values (${secret.sealed})`)],
    ['23502', () => owner.query(sql`update membership set name = null, email = 'Quartz'`)],
    // The server's message quotes these.
    ['22P02', () => owner.query(sql`select ${'Quartz Heron'}::uuid`)],
    // Also below Kysely and MikroORM, as the named statements of the API and the relay are.
    ['22P02', () => owner.pool.query({ name: 'a', text: 'select $1::uuid', values: ['Quartz Heron'] })],
    ['23502', () => owner.pool.query('insert into webhook_secret (sealed) values ($1)', [secret.sealed])],
    ['22P02', () => owner.query(sql`select ${`{"Quartz": ${key.fingerprint.toString('hex')}`}::jsonb`)],
  ];
  const values = [key.fingerprint, print, secret.sealed];
  for (const [reason, change] of rejected) {
    const text = await change().then(() => '', listTexts);
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
  await owner.change(async (tx) => {
    await tx.findOneOrFail(Webhook, { organizationId: orgId, id }, lock);
    // The trigger of the grant inserts a delivery that refers to the webhook.
    const { id: grantId } = await make.grant({ professional });
    expect(grantId).toBeDefined();
    const second = owner.change(async (other) => {
      await other.query(sql`set local lock_timeout = '100ms'`);
      await other.findOneOrFail(Webhook, { organizationId: orgId, id }, lock);
    });
    await expect(second).rejects.toMatchObject({ code: '55P03' });
  });
});

it('a query that is streamed through MikroORM fails, because its values would be in the text', async () => {
  const { owner } = await setupDatabase();
  await owner.change(async (tx) => {
    const rows = tx.createQueryBuilder(ApiKey).where({ label: 'a secret' }).stream();
    await expect(rows[Symbol.asyncIterator]().next()).rejects.toThrow('cannot be streamed');
  });
});
