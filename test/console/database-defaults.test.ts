/** No page depends on the defaults of the server, the database or a role. */
import { expect, it, onTestFinished } from 'vitest';
import { setHostileDefaults } from '#test/hostile-surroundings.ts';
import { setupFailover } from '#test/read-only.ts';
import { routes } from '../../apps/console/routes.ts';
import { pathIn } from '../security/console/requests.ts';
import { arrange } from '../security/console/scene.ts';
import { setupConsole } from './setup.ts';

it('every page is the same in a database with other defaults, and under roles with other defaults', {
  timeout: 300_000, // each page and form, three times
}, async () => {
  const t = await setupConsole();
  const scene = await arrange(t, 'Harbor');
  const visitor = t.http(scene.owner);
  const pages = routes.filter(({ method, name }) => method === 'GET' && !/stream|updates/i.test(name));
  const openAll = async () => {
    const seen: Record<string, Page> = {};
    for (const route of pages) {
      const { status, text } = await visitor.get(pathIn(route, scene));
      seen[route.name] = { status, words: listWords(text) };
    }
    // The one page that writes: the next visit would show its line.
    await t.owner.pool.query(`begin; set local session_replication_role = replica;
      delete from audit_entry where action = 'audit_log.download'; commit`);
    return seen;
  };
  await openAll(); // a first visit may write
  const [before, again] = [await openAll(), await openAll()];
  expect(Object.keys(before).length).toBeGreaterThan(30);
  expect(Object.values(before).filter(({ status }) => status >= 500)).toEqual([]);
  await setHostileDefaults(t.owner.pool);
  const failOver = await setupFailover(t.owner, onTestFinished);
  await failOver(false); // ends all connections
  await expect.poll(async () => (await visitor.get('/account')).status, { timeout: 30_000 }).toBe(200);
  const after = await openAll();
  for (const [name, page] of Object.entries(before)) {
    const constant = page.words.map((word, index) => word === again[name]?.words[index]);
    const compared = ({ status, words }: Page) => ({
      name,
      status,
      words: words.map((word, index) => (constant[index] ? word : maskDigits(word))),
    });
    expect(compared(after[name] as Page)).toEqual(compared(page));
  }
});

interface Page {
  status: number;
  words: string[];
}

/** Splits a page, without what may differ between two visits: tokens, durations, minutes of times. */
const listWords = (text: string): string[] =>
  text
    .replace(/(value|content|nonce|data-copy|data-now)="[^"]*"/g, '')
    .replace(/\b\d+ (seconds?|minutes?|h|min|s)\b|(?<=\d\d):\d\d(:\d\d(\.\d+)?)?/g, '')
    .split(/[\s"<>&;,]+/);

/** What two visits of a page have different, ids and times of the moment, keeps its form. */
const maskDigits = (word: string): string => word.replace(/[0-9a-f]/g, '0');
