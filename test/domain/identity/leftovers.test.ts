/** Maintenance deletes expired sign-in data with the worker's rights. */
import { expect, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { startPasskey, startTotp } from '#domain/identity/factors.ts';
import { sessionIdleMinutes } from '#domain/identity/limits.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { settings, setupPeople, visitor } from '#test/people.ts';
import { purgeExpiredSignInsSql } from '../../../apps/worker/maintenance-steps.ts';

it('the worker can purge expired sign-in data, and nothing else', async () => {
  const t = await setupPeople();
  const [living, idle, old] = [await t.enrol(), await t.enrol(), await t.enrol()];
  for (const { token } of [living, idle, old]) {
    await startTotp(t.db, await t.session(token), settings, t.now);
    await startPasskey(t.db, await t.session(token), settings.relyingParty, t.now);
  }
  for (const email of ['new@example.org', 'old@example.org']) {
    await createEnrolment(t.owner, { organizationId: living.orgId, email, by: 'orgctl' }, t.now);
    await signIn(t.db, { email, password: 'x', visitor }, t.now).catch(() => {});
  }
  const owner = (text: string, values: unknown[] = []) => t.owner.pool.query(text, values);
  await owner(`update console_session set last_seen_at = now() - make_interval(mins => $2) where person_id = $1`, [
    idle.personId,
    sessionIdleMinutes,
  ]);
  const day = `created_at = now() - interval '4 days', expires_at = now()`;
  await owner(`update console_session set ${day} where person_id = $1`, [old.personId]);
  await owner(`update enrolment set ${day} where email = 'old@example.org'`);
  await owner(
    `update sign_in_failure set expire = extract(epoch from now()) * 1000 where key in (
      select key from sign_in_failure order by key
      offset 1)`,
  );
  await owner(
    `update challenge c set expires_at = now() from console_session s
      where s.id = c.session_id and s.person_id = $1 and c.purpose = 'passkey_setup'`,
    [living.personId],
  );
  await owner(
    `update known_browser set created_at = now() - interval '30 days', expires_at = now() where person_id = $1`,
    [old.personId],
  );

  const worker = await openDatabase({
    server: parsePostgresUrl(t.database.urls.worker),
    applicationName: 'test',
    poolMax: 1,
  });
  try {
    await worker.pool.query(purgeExpiredSignInsSql);
    for (const table of [
      'console_session',
      'enrolment',
      'challenge',
      'known_browser',
      'sign_in_failure',
      'webhook_secret',
    ])
      await expect(worker.pool.query(`delete from ${table}`), table).rejects.toMatchObject({ code: '42501' });
  } finally {
    await worker.close();
  }
  const { rows } = await owner(
    `select (select array_agg(person_id) from console_session) as sessions,
       (select array_agg(purpose) from challenge) as challenges, (select count(*)::int from known_browser) as browsers,
       (select array_agg(email) from enrolment) as links, (select count(*)::int from sign_in_failure) as attempts`,
  );
  expect(rows).toEqual([
    { sessions: [living.personId], challenges: ['totp_setup'], browsers: 2, links: ['new@example.org'], attempts: 1 },
  ]);
});
