/** Limits on an attacker who has the login of an app, beyond the rights in rights.txt. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { countFailure, passwordSubject } from '#domain/identity/sign-in-failures.ts';
import { createKey } from '#domain/keys/create.ts';
import { openDatabase } from '#domain/open-database.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { TestDatabase } from '#test/database.ts';
import type { TestLogin } from '#test/global-setup.ts';
import { testAllowList, testKeySecrets, testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';

async function connectAs(database: TestDatabase, login: TestLogin): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.urls[login] });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Returns the number of changed rows, or the SQLSTATE or constraint that rejected the statement. */
const getOutcome = (client: pg.Client, statement: string) =>
  client.query(statement).then(
    ({ rowCount }) => rowCount,
    ({ code, constraint }: pg.DatabaseError) => constraint ?? code,
  );

it('the console cannot change, delete or add a system role', async () => {
  const { database, owner, make } = await setupDatabase();
  await make.member();
  const list = async () =>
    (await owner.pool.query('select * from role where organization_id is null order by position')).rows;
  const before = await list();
  const client = await connectAs(database, 'console');
  expect(await getOutcome(client, `update role set permissions = '{org.read}'`)).toBe(0);
  expect(await getOutcome(client, 'delete from role')).toBe(0);
  expect(await getOutcome(client, 'update role set organization_id = null')).toBe('42501');
  expect(
    await getOutcome(
      client,
      `insert into role (key, name, description, permissions, position) values ('owner2', '', '', '{}', 6)`,
    ),
  ).toBe('42501');
  expect(await list()).toEqual(before);
});

it('the console cannot reactivate a revoked key, extend an expiry, or change a key’s creator or scopes', async () => {
  const { database, make } = await setupDatabase();
  const key = await make.apiKey({ expiresAt: new Date(Date.now() + 60_000) });
  const client = await connectAs(database, 'console');
  expect(await getOutcome(client, 'update api_key set expires_at = null')).toBe('api_key_stays_ended');
  await make.keyRevoked(key);
  expect(await getOutcome(client, 'update api_key set revoked_at = null, number = 1')).toBe('api_key_stays_ended');
  for (const column of ['scopes', 'creator_id', 'organization_id', 'fingerprint', 'creator_left_at', 'created_at'])
    expect(await getOutcome(client, `update api_key set ${column} = ${column}`)).toBe('42501');
});

it('the worker cannot change a webhook’s URL, an event’s body, a delivery’s creation time, or a sum of the ledger', async () => {
  const { database, make } = await setupDatabase();
  await make.delivery({ webhook: await make.webhook() });
  const client = await connectAs(database, 'worker');
  for (const statement of [
    `update webhook set url = 'https://evil.example'`,
    `update webhook set event_types = event_types`,
    `update event set body = '{}'`,
    'update delivery set created_at = now()',
    'update delivery set event_id = event_id',
    'delete from delivery',
    'delete from event',
    'insert into event select * from event',
    'update webhook_secret set sealed = sealed',
    'insert into ledger_day (day, delivered) values (current_date, -1)',
    'insert into ledger_count (organization_id, changes) select id, -1 from organization',
    'update delivery set rolled_up = true',
    'update event set rolled_up = true',
  ])
    expect([statement, await getOutcome(client, statement)]).toEqual([statement, '42501']);
});

const logins = ['api', 'worker', 'console', 'platform', 'operator'] as const;

it('no login makes a large object or takes an advisory lock', async () => {
  const { database, owner } = await setupDatabase();
  const { rows } = await owner.pool.query<{ call: string }>(
    `select format('select pg_catalog.%I(%s)', p.proname, array_to_string(array(
        select '''0''::' || format_type(t, null) from unnest(p.proargtypes::oid[]) t), ', ')) as call
     from pg_proc p where p.proname ~ '^(lo_|loread$|lowrite$|pg_(try_)?advisory)'`,
  );
  expect(rows.length).toBeGreaterThan(40);
  for (const login of logins) {
    const client = await connectAs(database, login);
    for (const { call } of rows) {
      expect([login, call, await getOutcome(client, call)]).toEqual([login, call, '42501']);
    }
    expect(await getOutcome(client, `select lo_from_bytea(0, 'x')`)).toBe('42501');
  }
});

it('a login that holds every advisory lock, as a managed server permits, delays no change of a person', async () => {
  const { database, owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member({ signedIn: true });
  await owner.pool.query('grant execute on function pg_advisory_lock(bigint) to org_api_read');
  const hostile = await connectAs(database, 'api');
  const names = ['members', 'keys', 'webhooks'].map((kind) => `${kind}.${orgId}`);
  names.push('audit_partitions', 'probe');
  for (const name of names)
    await hostile.query(`select pg_advisory_lock(hashtextextended('org_api.' || $1::text, 0))`, [name]);
  for (const key of ['orga', 'impo'])
    await hostile.query('select pg_advisory_lock($1)', [Buffer.from(key).readUInt32BE()]);

  const console = await openDatabase({
    server: parsePostgresUrl(database.urls.console),
    applicationName: 'console',
    poolMax: 2,
  });
  onTestFinished(() => console.close());
  const db = console;
  await createEnrolment(db, { organizationId: orgId, email: 'new@example.org', by: { personId: userId } });
  await createWebhook(
    db,
    {
      organizationId: orgId,
      by: { personId: userId },
      url: 'https://hooks.example.com/',
      eventTypes: ['client.started'],
      description: '',
    },
    { allow: testAllowList, sealingKeys: testSealingKeys },
  );
  await createKey(
    db,
    { organizationId: orgId, by: { personId: userId }, scopes: ['org.read'], label: '', expiresAt: null },
    testKeySecrets,
  );
  await countFailure(db, { subject: passwordSubject('ada@example.org'), address: '192.0.2.1' }, new Date());
  await owner.pool.query('select lock_import()');
  await (await connectAs(database, 'worker')).query('select keep_audit_partitions()');
});

it('the operator changes no webhook, secret, delivery or redelivery of members, and those of its objects', async () => {
  const { database, owner, make } = await setupDatabase();
  const { orgId } = await make.member();
  const webhook = await make.webhook({ orgId });
  const before = async () =>
    (
      await owner.pool.query(
        'select w.*, s.id, s.valid_until from webhook w join webhook_secret s on s.webhook_id = w.id',
      )
    ).rows;
  const rows = await before();
  expect(rows).toHaveLength(1);
  const client = await connectAs(database, 'operator');
  const { rows: columns } = await owner.pool.query<{ name: string }>(
    `select column_name as name from information_schema.column_privileges
     where grantee = 'org_api_operator' and table_name = 'webhook' and privilege_type = 'UPDATE'`,
  );
  expect(columns.length).toBeGreaterThan(5);
  for (const { name } of columns)
    expect([name, await getOutcome(client, `update webhook set ${name} = ${name}`)]).toEqual([name, 0]);
  for (const [statement, outcome] of [
    [`update webhook set url = 'https://evil.example', managed_by = 'x', managed_uid = gen_random_uuid()`, 0],
    ['select from webhook for update', 0],
    ['select from webhook_secret', 0],
    ['update webhook_secret set valid_until = now()', 0],
    ['delete from webhook_secret', 0],
    [
      `insert into webhook_secret (organization_id, webhook_id, sealed) values ('${orgId}', '${webhook.id}', '')`,
      '42501',
    ],
    [
      `insert into redelivery (organization_id, id, webhook_id, range_from, range_to)
       values ('${orgId}', gen_random_uuid(), '${webhook.id}', now() - interval '1 day', now())`,
      '42501',
    ],
    [
      `insert into webhook (organization_id, url, event_types, number)
       values ('${orgId}', 'https://evil.example', '{seat.given}', 7)`,
      '42501',
    ],
    ['update delivery set state = state', '42501'],
  ] as const)
    expect([statement, await getOutcome(client, statement)]).toEqual([statement, outcome]);
  expect(await before()).toEqual(rows);

  await owner.pool.query(
    `update webhook set managed_by = 'WebhookSubscription us/orders', managed_uid = gen_random_uuid()`,
  );
  expect(await getOutcome(client, `update webhook set url = 'https://hooks.example.com/2'`)).toBe(1);
  expect(await getOutcome(client, 'update webhook_secret set valid_until = now()')).toBe(1);
});

it('policies on webhooks add no condition to a statement of the worker or the console', async () => {
  const { database } = await setupDatabase();
  for (const login of ['worker', 'console'] as const) {
    const client = await connectAs(database, login);
    for (const table of ['webhook', 'webhook_secret', 'redelivery']) {
      const { rows } = await client.query(`explain (costs off) select * from ${table}`);
      expect(rows.map((row) => row['QUERY PLAN'])).toEqual([`Seq Scan on ${table}`]);
    }
  }
});
