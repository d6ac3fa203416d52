/** Limits on an attacker who has the login of an app, beyond the rights in rights.txt. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { TestDatabase } from '#test/database.ts';
import type { TestLogin } from '#test/global-setup.ts';
import { setupDatabase } from '#test/setup.ts';

async function connectAs(database: TestDatabase, login: TestLogin): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.urls[login] });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Returns the number of changed rows, or the SQLSTATE or constraint that refused the statement. */
const outcomeOf = (client: pg.Client, statement: string) =>
  client.query(statement).then(
    ({ rowCount }) => rowCount,
    ({ code, constraint }: pg.DatabaseError) => constraint ?? code,
  );

it.each(['console', 'platform'] as const)('the %s cannot change, delete or add a system role', async (login) => {
  const { database, owner, make } = await setupDatabase();
  await make.member();
  const list = async () =>
    (await owner.pool.query('select * from role where organization_id is null order by position')).rows;
  const before = await list();
  const client = await connectAs(database, login);
  expect(await outcomeOf(client, `update role set permissions = '{org.read}'`)).toBe(0);
  expect(await outcomeOf(client, 'delete from role')).toBe(login === 'console' ? 0 : '42501');
  expect(await outcomeOf(client, 'update role set organization_id = null')).toBe('42501');
  expect(
    await outcomeOf(
      client,
      `insert into role (key, name, description, permissions, position) values ('owner2', '', '', '{}', 6)`,
    ),
  ).toBe('42501');
  expect(await list()).toEqual(before);
});

it('the console cannot reactivate a revoked key, extend an expiry, or change a key’s owner or scopes', async () => {
  const { database, make } = await setupDatabase();
  const key = await make.apiKey({ expiresAt: new Date(Date.now() + 60_000) });
  const client = await connectAs(database, 'console');
  expect(await outcomeOf(client, 'update api_key set expires_at = null')).toBe('api_key_stays_ended');
  await make.keyRevoked(key);
  expect(await outcomeOf(client, 'update api_key set revoked_at = null, slot = 1')).toBe('api_key_stays_ended');
  for (const column of ['scopes', 'maker_id', 'organization_id', 'fingerprint', 'maker_left_at', 'created_at'])
    expect(await outcomeOf(client, `update api_key set ${column} = ${column}`)).toBe('42501');
});

it('the console inserts activity rows with the current time only, and changes none', async () => {
  const { database, make } = await setupDatabase();
  await make.apiKey();
  const client = await connectAs(database, 'console');
  for (const statement of [
    `insert into activity (organization_id, action, at) select id, 'key.create', now() - interval '1 day'
      from organization`,
    'update activity set action = action',
    'delete from activity',
  ])
    expect(await outcomeOf(client, statement)).toBe('42501');
});

it('the worker cannot change a webhook’s URL, an event’s body, or a delivery’s creation time', async () => {
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
  ])
    expect([statement, await outcomeOf(client, statement)]).toEqual([statement, '42501']);
});
