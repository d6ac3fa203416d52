/** Every kind of connection sets what it needs, whatever a server, a database or a shell prefers. */
import { expect, it, vi } from 'vitest';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { connectionOptions, connectionParameters } from '#domain/db/server.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { hostileDefaults, hostileShell, setHostileDefaults } from '#test/hostile-surroundings.ts';
import { setupDatabase } from '#test/setup.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';

it('a connection has the parameters of the product in a database and a shell with other defaults', async () => {
  const { database, owner } = await setupDatabase();
  await setHostileDefaults(owner.pool);
  for (const [name, value] of Object.entries(hostileShell)) vi.stubEnv(name, value);
  const server = parsePostgresUrl(database.urls.console);
  const pooled = await openDatabase({ server, applicationName: 'test', poolMax: 1 });
  const single = new PrimaryConnection(connectionOptions(server, { applicationName: 'test' }));
  try {
    await single.connect();
    const text = `select name, setting, source from pg_settings where name = any ($1) order by name`;
    const names = [...new Set([...Object.keys(hostileDefaults), ...Object.keys(connectionParameters)])];
    for (const { rows } of [await pooled.pool.query(text, [names]), await single.query(text, [names])]) {
      expect(rows).toHaveLength(names.length);
      expect(rows.filter(({ source }) => source !== 'client')).toEqual([]);
      const found = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
      expect(found).toMatchObject({ DateStyle: 'ISO, MDY', TimeZone: 'UTC', search_path: 'public', lock_timeout: '0' });
    }
    expect((await single.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
    expect((await pooled.pool.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '5s' }]);
  } finally {
    vi.unstubAllEnvs();
    await pooled.close();
    await single.end();
  }
});

it('a login has them as its defaults too, and limits on transactions that are left open', async () => {
  const { database, owner } = await setupDatabase();
  const server = parsePostgresUrl(database.urls.api);
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [{ role: 'api', server }] });
  const { rows } = await owner.pool.query<{ setting: string }>(
    'select unnest(rolconfig) as setting from pg_roles where rolname = $1',
    [server.user],
  );
  const settings = rows.map(({ setting }) => setting);
  for (const name of Object.keys(connectionParameters))
    expect(settings.some((setting) => setting.startsWith(`${name}=`))).toBe(true);
  expect(settings).toEqual(
    expect.arrayContaining(['idle_in_transaction_session_timeout=60s', 'transaction_timeout=15min']),
  );
});
