/** rights.txt lists every right in the database. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createTestDatabase } from '#test/database.ts';
import type { TestLogin } from '#test/global-setup.ts';
import { setupDatabase } from '#test/setup.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { listRights, readRights } from './rights.ts';

it('rights.txt lists exactly the rights that are not the owner’s', async () => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const urls = Object.entries(database.urls);
  const logins = urls.map(([role, url]) => ({ role: role as TestLogin, server: parsePostgresUrl(url) }));
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins });
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  onTestFinished(() => owner.end());
  const names = urls.map(([role, url]) => [decodeURIComponent(new URL(url).username), `login ${role}`]);
  const held = await listRights(owner, Object.fromEntries(names));
  const listed = readRights();
  expect(held.filter((right) => !listed.includes(right))).toEqual([]);
  expect(listed.filter((right) => !held.includes(right))).toEqual([]);
});

it('every function with the owner’s rights, and every trigger, searches pg_temp last', async () => {
  const { owner } = await setupDatabase();
  const { rows } = await owner.pool.query(
    `select p.oid::regprocedure::text as name, p.proconfig as settings from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
     where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and (p.prosecdef
       or p.prorettype = 'trigger'::regtype)
       and p.proconfig is distinct from array['search_path=pg_catalog, public, pg_temp']`,
  );
  expect(rows).toEqual([]);
});

it('no login is a superuser, creates roles or databases, owns an object, or belongs to another app’s role', async () => {
  const { owner, database } = await setupDatabase();
  for (const [login, url] of Object.entries(database.urls)) {
    const { rows } = await owner.pool.query(
      `select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as "isPowerful",
         array(select g.rolname::text from pg_auth_members m join pg_roles g on g.oid = m.roleid
           where m.member = r.oid) as groups,
         (select count(*)::int from pg_shdepend d where d.refobjid = r.oid and d.deptype = 'o') as owned
       from pg_roles r where rolname = $1`,
      [decodeURIComponent(new URL(url).username)],
    );
    const group = `org_api_${login === 'api' ? 'read' : login}`;
    expect([login, ...rows]).toEqual([login, { isPowerful: false, groups: [group], owned: 0 }]);
  }
});
