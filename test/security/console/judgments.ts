/** What must hold of every response of the console and of its log, whatever was sent. */
import { expect } from 'vitest';
import type { Visited } from '#test/http-visitor.ts';
import type { ConsoleInstallation } from '../../console/setup.ts';
import { listErrors } from '../tried.ts';
import type { Scene } from './scene.ts';
import { fingerprintTables } from './tables.ts';

/** Markup that a test sends as text: it ends an attribute or begins elements where it is not escaped. */
export const markup = `"'><b id=canary><img src=x onerror=alert(1)><script>alert(1)</script>&lt;\``;
const unescaped = ['<b id=canary', '<img src=x', '<script>alert'];

/** Returns a text of one part of the tries: a route's name and what was sent, in the message of a failure. */
type What = string;

/**
 * Expects of one response: no 5xx, the headers of every response and cookie, no markup that was sent
 * as text, no cookie that was sent as text, no formula in a CSV, and no name of `foreign`.
 */
export function expectHarmless(what: What, { status, headers, text }: Visited, foreign?: string): void {
  expect(status, what).toBeLessThan(500);
  expectGuarded(what, headers);
  const isCsv = headers.get('content-type')?.startsWith('text/csv') ?? false;
  for (const element of isCsv ? [] : unescaped) expect(text, what).not.toContain(element);
  expect(headers.get('set-cookie') ?? '', what).not.toContain('planted');
  if (foreign !== undefined) expect(text, what).not.toContain(foreign);
  if (isCsv) expectNoFormula(what, text);
}

function expectNoFormula(what: What, csv: string): void {
  const fields = [...csv.matchAll(/"((?:[^"]|"")*)"/g)].map(([, field = '']) => field);
  for (const field of fields) expect(field, what).not.toMatch(/^[\s\p{Cf}]*[=+@\-\t\r]/u);
}

/** Expects the headers of every response of the console, and the attributes of each of its cookies. */
export function expectGuarded(what: What, headers: Headers, cache = 'no-store'): void {
  for (const cookie of headers.getSetCookie())
    expect(cookie, what).toMatch(/^__Host-.*; path=\/;.* samesite=lax; secure; httponly$/);
  expect(Object.fromEntries(Object.keys(guards).map((name) => [name, headers.get(name)])), what).toEqual({
    ...guards,
    'cache-control': cache,
  });
  expect(headers.get('content-type'), what).toMatch(
    /^(text\/(html|csv|css|javascript|plain); charset=utf-8|image\/svg\+xml|application\/json)/,
  );
}

const guards = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';" +
    "form-action 'self';frame-ancestors 'none';base-uri 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'access-control-allow-origin': null,
  server: null,
  'x-powered-by': null,
};

/**
 * Expects that nothing in the database changes from now on.
 * @returns a function that compares. Signing in, challenges and records of forms are left out.
 */
export async function expectNoChange({ owner }: ConsoleInstallation): Promise<(what: What) => Promise<void>> {
  const before = await fingerprintTables(owner.pool);
  return async (what) => expect(await fingerprintTables(owner.pool), what).toEqual(before);
}

/**
 * Expects of the log that each line is one line of JSON, none is an error, and none contains a name,
 * an address, a session or a key of the scenes; and that no field's name reached the prototype of
 * objects, which the console shares with the tests.
 */
export function expectQuietLog({ logLines }: ConsoleInstallation, scenes: readonly Scene[]): void {
  expect(logLines.length).toBeGreaterThan(0);
  expect(listErrors(logLines)).toEqual([]);
  for (const line of logLines) expect(line.slice(0, -1)).not.toMatch(/[\r\n\u2028\u2029]/);
  const log = logLines.join('');
  for (const { mark, owner, key, invitedEmail } of scenes)
    for (const secret of [mark, owner.email, owner.sessionToken, key.key, invitedEmail])
      expect(log).not.toContain(secret);
  expect([Object.keys(Object.prototype), 'a' in {}]).toEqual([[], false]);
}
