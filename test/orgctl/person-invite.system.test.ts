/** `orgctl person invite`: the first way into the console. */
import { expect, it } from 'vitest';
import { findEnrolment } from '#domain/identity/create-link.ts';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';

const timeout = 60_000;

it('person invite prints a one-time link for a member or a new person, which a newer one replaces', {
  timeout,
}, async () => {
  const t = await setupOrgctl();
  const orgId = await t.make.organization({ name: 'Harbor' });
  const invite = async (...more: string[]) => {
    const called = await t.orgctl('person', 'invite', '--org', orgId, '--email', 'ada@example.org', ...more, '--json');
    expect(called).toMatchObject({ code: 0, stderr: '' });
    return called.json<{ url: string; expiresAt: string; personId: string; kind: string }>();
  };
  const first = await invite('--name', 'Ada Rivers', '--roles', 'owner,billing');
  const [, token = ''] = /^https:\/\/console\.example\.org\/enrol#([\w-]{43})$/.exec(first.url) ?? [];
  expect(await findEnrolment(t.owner, token, new Date())).toMatchObject({
    personId: first.personId,
    email: 'ada@example.org',
    organizationName: 'Harbor',
    kind: 'invite',
  });
  const { rows } = await t.owner.pool.query(
    `select m.name, m.status, array_agg(r.key order by r.key) as roles from membership m
     join membership_role mr using (organization_id, person_id) join role r on r.id = mr.role_id group by 1, 2`,
  );
  expect(rows).toEqual([{ name: 'Ada Rivers', status: 'invited', roles: ['billing', 'owner'] }]);
  expect((await invite()).personId).toBe(first.personId);
  expect(await findEnrolment(t.owner, token, new Date())).toBeNull();
  const { rows: lines } = await t.owner.pool.query('select person_id, action, detail::text as detail from audit_entry');
  expect(lines).toMatchObject([
    { person_id: null, action: 'member.invite' },
    { person_id: null, action: 'member.link' },
  ]);
  for (const { detail } of lines) expect(detail).not.toContain(token);
});

it('person invite reports that the URL of the console is unknown', { timeout }, async () => {
  const t = await setupOrgctl();
  const orgId = await t.make.organization();
  const { CONSOLE_URL: _, ...env } = t.env;
  const called = await callOrgctl(env, ['person', 'invite', '--org', orgId, '--email', 'ada@example.org']);
  expect(called).toMatchObject({ code: 2, stdout: '' });
  expect(called.stderr).toContain('CONSOLE_URL is missing');
});
