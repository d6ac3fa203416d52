/** Pages that one session opens many times at once, and what another organization notices. */
import { expect, it } from 'vitest';
import { statementsOf } from '#test/statements-of.ts';
import { setupConsole } from './setup.ts';

it('30 pages of one session run two statements at a time, and another organization’s page is answered meanwhile', async () => {
  const t = await setupConsole();
  const [ada, bo] = [await t.enrol(), await t.enrol()];
  const { lock, until } = statementsOf(t.owner, 'org-console');
  const unlock = await lock('call_sum');
  const one = t.http(ada);
  const flood = Array.from({ length: 30 }, async () => (await one.get(`/o/${ada.orgId}/usage`)).status);
  await until((waits) => waits === 2);
  expect((await t.http(bo).get(`/o/${bo.orgId}/members`)).status).toBe(200);
  await until((waits) => waits === 2);
  await unlock();
  for (const status of await Promise.all(flood)) expect([200, 429, 503]).toContain(status);
});
