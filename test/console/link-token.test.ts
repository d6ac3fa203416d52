/** No URL that a server sees contains the token of a one-time link. */
import { expect, it } from 'vitest';
import { findLinkToken } from '#domain/identity/token.ts';
import { secondsLeft } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

it('no route has a token in its path or query', () => {
  const named = routes.filter(({ path, method, schema }) => {
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
    return [...names, ...(method === 'GET' ? Object.keys(schema.shape) : [])].some((name) =>
      /token|secret/i.test(name),
    );
  });
  expect(named).toEqual([]);
});

it('the token of a link travels in a form and a cookie, and appears in no log line, page or redirect', async () => {
  const t = shared();
  const link = await t.link(await t.make.member());
  const token = findLinkToken(link) ?? '';
  expect(link).toBe(`${t.origin}/enrol#${token}`);
  const visitor = t.http();
  const opened = await visitor.submit('/enrol', '/enrol', { link: ` ${link} ` });
  expect(opened).toMatchObject({ status: 303, to: '/enrol/step', text: '' });
  const cookie = opened.cookies.find((line) => line.includes(token)) ?? '';
  expect(cookie).toMatch(/enrolment-\d+=[^;]*; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/);
  expect(Math.round(secondsLeft(cookie) / 3_600)).toBe(1);
  const step = await visitor.get('/enrol/step');
  expect(step.text).not.toContain(token);
  for (const { headers } of [opened, step]) {
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('same-origin');
  }
  // Also when the console no longer has that path.
  expect((await t.http().get(`/enrol/${token}`)).status).toBe(404);
  expect(t.logLines.join('')).toContain('openEnrolmentLink');
  expect(t.logLines.join('')).not.toContain(token);
});

it('a form without a link, or from another site, opens nothing and shows none of its input', async () => {
  const t = shared();
  const token = findLinkToken(await t.link(await t.make.member())) ?? '';
  const visitor = t.http();
  const wrong = await visitor.submit('/enrol', '/enrol', { link: `${token}x` });
  expect([wrong.status, wrong.cookies.join()]).toEqual([422, '']);
  expect(wrong.text).toContain('Paste the whole link');
  expect(wrong.text).not.toContain(token);
  const stale = await visitor.post('/enrol', { link: token });
  expect([stale.status, stale.cookies.join()]).toEqual([422, '']);
  expect(stale.text).not.toContain(token);
  const foreign = await visitor.submit(
    '/enrol',
    '/enrol',
    { link: token },
    { headers: { origin: 'https://evil.example' } },
  );
  expect([foreign.status, foreign.cookies.join()]).toEqual([403, '']);
  expect((await visitor.openLink(`#${'x'.repeat(43)}`)).status).toBe(410);
});
