/**
 * What pages say is true, and in the words of who reads it. Source: review of the console, points
 * 12, 18, 21 and 26.
 */
import { expect, it } from 'vitest';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

const plain = (text: string) => text.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ');

it('who has lost a factor is sent to the operator, who alone can help, and to no owner', async () => {
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
    expect(plain(text)).toContain('the operator of this service');
    expect(plain(text)).not.toMatch(/ask an owner|help the other back/);
  }
});

it('a key is made in plain words, with the day on which it ends', async () => {
  const t = shared();
  const ada = await t.enrol();
  const text = plain((await t.http(ada).get(`/o/${ada.orgId}/keys/new`)).text);
  expect(text).toContain('The referral codes, the referral earnings org.referrals.manage');
  const end = new Date(t.now().getTime() + 90 * 86_400_000).toISOString().slice(0, 10);
  expect(text).toContain(`In 90 days On ${end}`);
});

it('a key that got out is pasted into no password field, which a browser would fill in or offer to keep', async () => {
  const t = shared();
  const ada = await t.enrol();
  const { text } = await t.http(ada).get(`/o/${ada.orgId}/keys/compromised`);
  const [input = ''] = /<input[^>]*name="key"[^>]*>/.exec(text) ?? [];
  expect(input).toContain('type="text"');
  expect(input).toContain('class="exact masked"');
});

it('recovery codes are shown with advice that does not contradict itself', async () => {
  const t = shared();
  const ada = await t.enrol();
  const { text } = await t.http(ada).submit('/account', '/account/recovery-codes');
  expect(text).toContain('This is the only time they are shown.');
  expect(text).not.toContain('password manager');
});
