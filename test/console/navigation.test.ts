/** The navigation, which every page of a signed-in person has. */
import { expect, it } from 'vitest';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

const listLinks = (text: string): string[] => {
  const nav = /<nav class="sections"[\s\S]*?<\/nav>/.exec(text)?.[0] ?? '';
  return [...nav.matchAll(/<a href="([^"]*)"/g)].map(([, href = '']) => href);
};

it('is on the account and on pages that do not exist, leads to the organization and signs out', async () => {
  const t = shared();
  const ada = await t.enrol();
  const at = (rest: string) => `/o/${ada.orgId}${rest}`;
  const everywhere = listLinks((await t.http(ada).get(at(''))).text);
  expect(everywhere).toContain(at('/webhooks'));
  for (const path of ['/account', at('/nothing'), at('/keys/not-an-id'), '/nothing']) {
    const { text } = await t.http(ada).get(path);
    expect([path, listLinks(text), text.includes('action="/sign-out"')]).toEqual([path, everywhere, true]);
  }
});

it('offers the organizations of a person who has several, where none is chosen', async () => {
  const t = shared();
  const ada = await t.enrol();
  const second = await t.make.organization({ name: 'Lakeside Mediation' });
  await t.make.member({ orgId: second, userId: ada.personId });
  const links = listLinks((await t.http(ada).get('/account')).text);
  expect(new Set(links)).toEqual(new Set([`/o/${ada.orgId}`, `/o/${second}`, '/account']));
});

it('is not on a page that does not exist for a visitor without a session, who gets no cookie there', async () => {
  const t = shared();
  const { status, text, headers } = await t.http().get('/nothing');
  expect([status, listLinks(text), headers.get('set-cookie')]).toEqual([404, [], null]);
});
