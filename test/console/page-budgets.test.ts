/** Requests that one session sends many at once, and what others notice. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { watchStatements } from '#test/watch-statements.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { createShares } from '../../apps/console/web/shares.ts';
import { setupConsole } from './setup.ts';

it('30 pages of one session run one statement at a time, and another organization’s page is answered meanwhile', async () => {
  const t = await setupConsole();
  const [ada, bo] = [await t.enrol(), await t.enrol()];
  const { lock, until } = watchStatements(t.owner, 'org-console');
  const unlock = await lock('call_sum');
  const one = t.http(ada);
  const flood = Array.from({ length: 30 }, async () => (await one.get(`/o/${ada.orgId}/usage`)).status);
  await until((waits) => waits === 1);
  expect((await t.http(bo).get(`/o/${bo.orgId}/members`)).status).toBe(200);
  await until((waits) => waits === 1);
  await unlock();
  for (const status of await Promise.all(flood)) expect([200, 429, 503]).toContain(status);
});

it('organizations take turns, however many of their people wait', async () => {
  const { connections } = createShares(5);
  const order: string[] = [];
  const open = async (organization: string, person: string) => {
    const reservation = await connections.reserve({ organization, person }, 1, { onEnd: () => {} });
    order.push(organization);
    await new Promise(setImmediate);
    reservation.free();
  };
  const people = ['1', '2', '3', '4', '5'].map((person) => open('a', person));
  await Promise.all([...people, open('b', '6')]);
  expect(order).toEqual(['a', 'a', 'b', 'a', 'a', 'a']);
});

it('forms whose bodies come slowly hold nothing: a page of their session is answered', async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const { host, hostname, port } = new URL(t.console.url);
  for (let form = 0; form < 8; form += 1) {
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.write(
      `POST /o/${ada.orgId}/keys/new HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${t.origin}\r\n` +
        `Cookie: ${cookieName('session', t.origin)}=${ada.sessionToken}\r\n` +
        'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=',
    );
  }
  const statuses = [];
  for (let page = 0; page < 5; page += 1) statuses.push((await t.http(ada).get(`/o/${ada.orgId}`)).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200]);
});
