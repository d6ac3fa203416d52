/** Who reaches what people sign in with. Source: design, section 3; migration 0011. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';

const tables = [
  'console_session',
  'enrolment',
  'factor_challenge',
  'known_browser',
  'passkey_challenge',
  'recovery_code',
  'second_factor',
  'sign_in',
  'sign_in_attempt',
];

async function rightsOf(role: 'api' | 'worker' | 'console' | 'platform', among: readonly string[]) {
  const { database } = await setupDatabase();
  const client = new pg.Client({ connectionString: database.urls[role] });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query<{ name: string; rights: string }>(
    `select c.relname as name, concat_ws(', ', (select string_agg(p, ', ' order by p) from unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'trigger', 'references']) as p
         where has_table_privilege(c.oid, p)),
       (select string_agg(format('%s (%s)', p, a.attname), ', ' order by p, a.attname) from unnest(array['select', 'insert', 'update', 'references']) as p
         join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where not has_table_privilege(c.oid, p) and has_column_privilege(c.oid, a.attnum, p))) as rights
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname = any ($1) order by 1`,
    [among],
  );
  return Object.fromEntries(rows.filter(({ rights }) => rights !== '').map(({ name, rights }) => [name, rights]));
}

it('the console reads and writes them, and cannot remove how somebody signs in', async () => {
  expect(await rightsOf('console', tables)).toEqual({
    console_session: 'delete, insert, select, update',
    enrolment: 'delete, insert, select, update',
    factor_challenge: 'delete, insert, select, update',
    known_browser: 'delete, insert, select',
    passkey_challenge: 'delete, insert, select',
    recovery_code: 'delete, insert, select, update',
    second_factor: 'delete, insert, select, update',
    sign_in: 'insert, select, update',
    sign_in_attempt: 'delete, insert, select',
  });
});

it('the worker may erase what is over by its time, and sees nothing else of it', async () => {
  expect(await rightsOf('worker', tables)).toEqual({
    console_session: 'delete, select (expires_at), select (last_seen_at)',
    enrolment: 'delete, select (expires_at)',
    factor_challenge: 'delete, select (expires_at)',
    known_browser: 'delete, select (expires_at)',
    passkey_challenge: 'delete, select (expires_at)',
    sign_in_attempt: 'delete, select (at)',
  });
});

it('neither the API nor the platform’s application reaches any of them', async () => {
  expect(await rightsOf('api', tables)).toEqual({});
  expect(await rightsOf('platform', tables)).toEqual({});
});

it('the console begins and ends access, changes nothing else of it, and keeps the log, families and organizations as they are', async () => {
  const among = ['client_grant', 'seat', 'role', 'membership', 'membership_role', 'organization', 'family', 'activity'];
  expect(await rightsOf('console', among)).toEqual({
    activity: 'insert, select',
    client_grant: 'insert, select, update (end_reason), update (ends_at), update (status)',
    family: 'select',
    membership: 'insert, select, update',
    membership_role: 'delete, insert, select',
    organization: 'select',
    role: 'delete, insert, select, update',
    seat: 'insert, select, update',
  });
});
