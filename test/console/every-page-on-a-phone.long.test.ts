/**
 * Every page on a phone, light and dark; in a separate file, so that two processes share the work.
 */
import { afterAll, expect, it } from 'vitest';
import { closeBrowser } from './browser.ts';
import { judgeEveryPage } from './pages/judge.ts';

afterAll(closeBrowser);

it('every page has no accessibility violation, fits the screen, and causes no browser error', {
  timeout: 400_000,
}, async () => {
  expect(await judgeEveryPage('narrow')).toEqual({});
});
