/** Concurrent requests. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { liveKeysPerOrganization } from '#domain/contract/limits.ts';
import { type HttpVisitor, hiddenFields, unescaped, type Visited } from '#test/http-visitor.ts';
import { arrange } from './hostile/scene.ts';
import { tokenOf } from './hostile/walk.ts';
import { type ConsoleInstallation, codeAt, goodPassword, setupConsole, shareConsole } from './setup.ts';

const shared = shareConsole();

const timeout = 120_000;
const statuses = (responses: readonly { status: number }[]) => responses.map(({ status }) => status).sort();

describe('in parallel', () => {
  it('two revocations of one key revoke it once, and both succeed', { timeout }, async () => {
    const t = shared();
    const { orgId, owner, key } = await arrange(t, 'Harbor');
    const other = await t.enrol({ orgId, name: 'Bo Rivers' });
    const path = `/o/${orgId}/keys/${key.id}/revoke`;
    const visitors = [owner, other].map((person) => t.http(person));
    // Both have the form open before either sends it.
    const pages = await Promise.all(visitors.map((visitor) => visitor.get(path)));
    const both = await Promise.all(visitors.map((visitor, at) => visitor.submit(pages[at] as Visited, path)));
    expect(both.every(({ status }) => status === 303 || status === 422)).toBe(true);
    expect(statuses(both)).toContain(303);
    expect(await count(t, `select count(*) from api_key where id = $1 and revoked_at is not null`, [key.id])).toBe(1);
    const entries = `select count(*) from audit_entry where key_id = $1 and action = 'key.revoke'`;
    expect(await count(t, entries, [key.id])).toBe(1);
    expect((await t.http(owner).get(path)).text).toContain('API key already revoked');
  });

  it('30 creations of a key create 25 different keys, and 5 are rejected with the reason', {
    timeout,
  }, async () => {
    const t = await setupConsole({ DATABASE_POOL_MAX: '30' });
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const path = `/o/${ada.orgId}/keys/new`;
    const _token = await tokenOf(visitor);
    const fields = { name: 'Report', scopes: 'org.read', expiry: 'never', expiresOn: '', _token };
    const sent = await Promise.all(
      Array.from({ length: 30 }, () => visitor.post(path, { ...fields, _form: randomUUID() })),
    );
    const made = sent.filter(({ status }) => status === 200);
    const keys = made.map(({ text }) => /aln_us_\w+/.exec(text)?.[0]);
    expect(new Set(keys).size).toBe(liveKeysPerOrganization);
    const rejected = sent.filter(({ status }) => status !== 200);
    expect(statuses(rejected)).toEqual(Array.from({ length: 30 - liveKeysPerOrganization }, () => 422));
    for (const { text } of rejected) expect(text).toMatch(/25 (?:(?:live|active) )?(?:API )?keys/);
    const live = 'select count(*) from api_key where organization_id = $1 and revoked_at is null';
    expect(await count(t, live, [ada.orgId])).toBe(liveKeysPerOrganization);
  });

  it('two uses of one enrolment link in two browsers enrol once, and the other finds the link expired', {
    timeout,
  }, async () => {
    const t = shared();
    const ada = await t.make.member({ name: 'Ada Rivers' });
    const link = await t.link(ada);
    const [first, second] = [await chosen(t, link), await chosen(t, link)];
    // The second start has replaced the first one's secret; a code of each is sent concurrently.
    const finish = ({ visitor, secret, page }: Chosen) =>
      visitor.submit(page, '/enrol/totp', { code: codeAt(secret, t.now()) });
    const responses = await Promise.all([finish(first), finish(second), finish(second)]);
    const inside = responses.filter(({ text }) => text.includes('You’re all set'));
    expect(inside).toHaveLength(1);
    expect(await count(t, 'select count(*) from console_session where person_id = $1', [ada.userId])).toBe(1);
    expect(await count(t, 'select count(*) from second_factor where person_id = $1', [ada.userId])).toBe(1);
    for (const each of [t.http(), first.visitor]) expect((await each.openLink(link)).status).toBe(410);
  });

  it('two owners who remove each other or both leave end with one owner', { timeout }, async () => {
    const t = shared();
    const ada = await t.enrol();
    const bo = await t.enrol({ orgId: ada.orgId, name: 'Bo Rivers' });
    const leave = `/o/${ada.orgId}/leave`;
    const remove = (personId: string) => `/o/${ada.orgId}/members/person/${personId}/remove`;
    const forms = [
      [ada, leave] as const,
      [bo, leave] as const,
      [ada, remove(bo.personId)] as const,
      [bo, remove(ada.personId)] as const,
    ];
    const ready = await Promise.all(
      forms.map(async ([person, path]) => {
        const visitor = t.http(person);
        return { visitor, path, hidden: hiddenFields((await visitor.get(path)).text, path) };
      }),
    );
    const responses = await Promise.all(ready.map(({ visitor, path, hidden }) => visitor.post(path, hidden)));
    expect(responses.every(({ status }) => status < 500)).toBe(true);
    const owners = `select count(*) from membership m join membership_role mr using (organization_id, person_id)
      join role r on r.id = mr.role_id
      where m.organization_id = $1 and m.status = 'active' and r.key = 'owner' and r.organization_id is null`;
    expect(await count(t, owners, [ada.orgId])).toBe(1);
  });

  it('two step-ups with one code carry out one change', { timeout }, async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    t.pass(6 * 60_000);
    const requested = await visitor.submit('/account', '/account/recovery-codes');
    const fields = { ...hiddenFields(requested.text, '/account/recovery-codes'), factorCode: t.nextCode(ada) };
    const responses = await Promise.all([1, 2].map(() => t.http(ada).post('/account/recovery-codes', fields)));
    expect(responses.filter(({ text }) => text.includes('only time they are shown'))).toHaveLength(1);
    const renewals = `select count(*) from audit_entry where person_id = $1 and action = 'recovery_codes.renew'`;
    expect(await count(t, renewals, [ada.personId])).toBe(1);
  });
});

interface Chosen {
  visitor: HttpVisitor;
  secret: string;
  page: Awaited<ReturnType<HttpVisitor['get']>>;
}

/** A person who has opened a link, chosen a password and seen the secret for their app. */
async function chosen(t: ConsoleInstallation, link: string): Promise<Chosen> {
  const visitor = t.http();
  const password = await visitor.openLink(link);
  const choice = password.text.includes('/enrol/password')
    ? await visitor.submit(password, '/enrol/password', { password: goodPassword })
    : password;
  const opened = choice.status === 303 ? await visitor.get(choice.to ?? '') : choice;
  const page = await visitor.submit(opened, '/enrol/totp/start');
  return { visitor, page, secret: unescaped(hiddenFields(page.text, '/enrol/totp').secret ?? '') };
}

async function count(t: ConsoleInstallation, text: string, values: unknown[]): Promise<number> {
  const { rows } = await t.owner.pool.query<{ count: string }>(text, values);
  return Number(rows[0]?.count);
}
