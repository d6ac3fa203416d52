/** `orgctl mail show`, as operators run it. */
import { expect, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import type { MailDetails } from '#domain/mail/find-mail.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { testSealingKeys } from '#test/secrets.ts';

it('says what a mail was by its Message-ID or id, and neither its address nor its link', async () => {
  const { owner, make, orgctl } = await setupOrgctl();
  const orgId = await make.organization();
  const { userId } = await make.member({ orgId, signedIn: true });
  const email = 'new.person@example.org';
  const invited = { organizationId: orgId, email, by: 'orgctl', mailKeys: testSealingKeys } as const;
  const { token, personId } = await createEnrolment(owner, invited);
  const { id: keyId } = await make.apiKey({ creator: { orgId, userId, roleId: null } });
  await owner.pool.query(`insert into audit_entry (organization_id, action) values ($1, 'audit_log.download')`, [
    orgId,
  ]);
  const { rows } = await owner.pool.query<{ id: string; kind: string; hash: string }>(
    'select id, kind, about as hash from mail',
  );
  const show = (mail: string, ...more: string[]) => orgctl('mail', 'show', '--mail', mail, '--region', 'us', ...more);
  const find = (kind: string) => rows.find((one) => one.kind === kind)?.id ?? '';

  const waiting = await show(`<${find('invitation')}@mail.example.org>`, '--json');
  expect(waiting.json<MailDetails>()).toEqual({
    id: find('invitation'),
    kind: 'invitation',
    organizationId: orgId,
    personId,
    about: null,
    state: 'waiting',
    attempts: 0,
    reply: null,
    createdAt: expect.stringMatching(/Z$/),
    attemptedAt: null,
    nextAttemptAt: expect.stringMatching(/Z$/),
    settledAt: null,
  });
  await owner.pool.query(`select * from admit_mail()`);
  await owner.pool.query(`select settle_mail(id, attempts, 'rejected', '550 5.1.1', null) from mail where id = $1`, [
    find('invitation'),
  ]);
  const rejected = await show(find('invitation').toUpperCase());
  expect(rejected.stdout).toMatch(/^kind +invitation$/m);
  expect(rejected.stdout).toMatch(/^state +rejected$/m);
  expect(rejected.stdout).toMatch(/^reply +550 5\.1\.1$/m);
  for (const secret of [email, 'new.person', token, rows.find(({ kind }) => kind === 'invitation')?.hash ?? 'none'])
    expect(`${waiting.stdout}${rejected.stdout}`).not.toContain(secret);
  expect((await show(find('key.create'), '--json')).json<MailDetails>().about).toBe(keyId);
  expect((await show(find('audit_log.download'), '--json')).json()).toMatchObject({ personId: userId, about: null });

  expect(await show(orgId)).toMatchObject({
    code: 1,
    stderr: 'There is no such mail. Mails are kept for 30 days after they were settled.\n',
  });
  for (const wrong of ['x', `${email}`, `<x@mail.example.org>`]) expect(await show(wrong)).toMatchObject({ code: 2 });
});
