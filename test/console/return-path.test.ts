/**
 * After signing in, the browser goes only to the console, whatever a link requested. See OWASP,
 * "Unvalidated Redirects".
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { returnPath } from '../../apps/console/web/return-path.ts';
import { goodPassword, setupConsole } from './setup.ts';

const origin = 'https://console.example.org';

/**
 * Parts of paths in this attack: slashes, dots, spaces that browsers remove, and the encoded forms
 * of each.
 */
const pieces = [
  '/',
  '//',
  '\\',
  '.',
  '..',
  '/./',
  '/../',
  '/.//',
  '/..//',
  ';',
  ':',
  '@',
  '?',
  '#',
  '&to=',
  '%',
  '%2f',
  '%2F',
  '%5c',
  '%2e',
  '%2e%2e',
  '%09',
  '%0a',
  '%00',
  '%25',
  '\t',
  '\n',
  '\r',
  '\0',
  ' ',
  '\u00a0',
  '／',
  '＼',
  '．',
  '。',
  '‥',
  '\u200b',
  'é',
  '😀',
  '\ud800',
  'evil.example',
  'https:',
  'javascript:',
  'user@evil.example',
  '[::1]',
  'o',
  'keys',
  'sign-in',
];
const requested = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join('')),
  fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => `/${parts.join('')}`),
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => `/${text}`),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
);

describe('the path after sign-in', () => {
  it.each([
    ['/.//evil.example', '/'],
    ['/..//evil.example', '/'],
    ['/o/../..//evil.example/x', '/'],
    ['/%2e//evil.example', '/'],
    ['/.%2e/%2e//evil.example', '/'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    ['/\t/evil.example', '/'],
    ['https://evil.example/', '/'],
    ['javascript:alert(1)', '/'],
    ['', '/'],
    ['/', '/'],
    ['/o/1/keys', '/o/1/keys'],
    ['/o/1/audit-log?from=2026-01-01&q=a%20b', '/o/1/audit-log?from=2026-01-01&q=a%20b'],
    ['/o/1/../2/keys#part', '/o/2/keys'],
    ['/o//keys', '/o//keys'],
  ])('%j leads to %j', (to, path) => {
    expect(returnPath(to, origin)).toBe(path);
  });

  it('stays at the console’s origin for 1,000 generated paths, and does not change when applied twice', () => {
    fc.assert(
      fc.property(requested, (to) => {
        const path = returnPath(to, origin);
        expect(path).toMatch(/^\/(?![/\\])/);
        for (const page of ['/', '/sign-in/second-factor?to=x', '/o/1/keys'])
          expect(new URL(path, new URL(page, origin)).origin).toBe(origin);
        expect(returnPath(path, origin)).toBe(path);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is a path of the console also for /.//evil.example', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const visitor = t.http();
    const to = '/.//evil.example';
    const page = await visitor.get(`/sign-in?to=${encodeURIComponent(to)}`);
    const first = await visitor.submit(page, '/sign-in', { email: ada.email, password: goodPassword });
    expect(first.to).toBe('/sign-in/second-factor');
    const factorCode = t.nextCode(ada);
    const second = await visitor.submit('/sign-in/second-factor', '/sign-in/second-factor', { factorCode, to });
    expect(second).toMatchObject({ status: 303, to: '/' });
  });
});
