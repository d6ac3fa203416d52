/** Texts of pages that must be true. */
import { expect, it } from 'vitest';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

const plain = (text: string) => text.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ');

it('a person who has lost a factor is sent to support, not to an owner', async () => {
  const t = shared();
  const ada = await t.enrol();
  const visitor = t.http(ada);
  const at = (rest: string) => `/o/${ada.orgId}${rest}`;
  const pages = [
    await t.http().get('/sign-in'),
    await visitor.get(at('/members')),
    await visitor.get(at('/members/roles')),
  ];
  for (const { text } of pages) {
    expect(plain(text)).toMatch(/support|the operator of this service/);
    expect(plain(text)).not.toMatch(/ask an owner|help the other back/);
  }
});

it('a key is created in plain words, with its expiry date', async () => {
  const t = shared();
  const ada = await t.enrol();
  const text = plain((await t.http(ada).get(`/o/${ada.orgId}/keys/new`)).text);
  expect(text).toContain('Read the referral codes and the referral earnings org.referrals.manage');
  const end = new Date(t.now().getTime() + 90 * 86_400_000).toISOString().slice(0, 10);
  expect(text).toContain(`In 90 days On ${end}`);
});

it('a leaked key is not entered in a password field, which browsers fill in and save', async () => {
  const t = shared();
  const ada = await t.enrol();
  const { text } = await t.http(ada).get(`/o/${ada.orgId}/keys/compromised`);
  const [input = ''] = /<input[^>]*name="key"[^>]*>/.exec(text) ?? [];
  expect(input).toContain('type="text"');
  expect(input).toContain('class="exact masked"');
});

it('recovery codes are shown once, with consistent advice', async () => {
  const t = shared();
  const ada = await t.enrol();
  const { text } = await t.http(ada).submit('/account', '/account/recovery-codes');
  expect(text).toContain('This is the only time they are shown.');
  expect(text).not.toContain('password manager');
});
