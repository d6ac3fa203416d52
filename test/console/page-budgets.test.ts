/** Requests that one session sends many at once, and what others notice. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { watchStatements } from '#test/watch-statements.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { routes } from '../../apps/console/routes.ts';
import { createShares } from '../../apps/console/web/shares.ts';
import { pathIn } from '../security/console/requests.ts';
import { arrange } from '../security/console/scene.ts';
import { keepConnection } from './kept-connection.ts';
import { setupConsole } from './setup.ts';

it('of the requests of one session for any page, one runs a statement, and the others wait for it', async () => {
  const t = await setupConsole();
  const scene = await arrange(t, 'Harbor');
  const cookie = `${cookieName('session', t.origin)}=${scene.owner.sessionToken}`;
  const { host } = new URL(t.origin);
  const open = () => {
    const connection = keepConnection(t.console.url, { host, cookie });
    onTestFinished(() => void connection.close());
    return connection;
  };
  const [pulse, ...connections] = Array.from({ length: 7 }, open);
  for (const { get } of connections) expect(await get('/livez')).toBe(200);
  const { lock } = watchStatements(t.owner, 'org-console');
  const counts: [page: string, statements: number][] = [];
  const pages = routes.filter(({ method }) => method === 'GET');
  for (const route of pages) {
    const unlock = await lock('console_session'); // which the first statement of each page reads
    const requests = connections.map(({ get }) => get(pathIn(route, scene)));
    // Requests that came before on open connections were read before this one is answered.
    expect(await pulse?.get('/livez')).toBe(200);
    counts.push([route.name, await countStatements(t.console.metricsUrl)]);
    await unlock();
    await Promise.all(requests);
  }
  expect(counts).toEqual(pages.map(({ name }) => [name, 1]));
});

/** Counts the statements that run or wait for a connection of the console's pool. */
async function countStatements(metricsUrl: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const count = (state: string) =>
    Number(new RegExp(`^org_console_database_connections\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
  return count('open') - count('idle') + count('waiting');
}

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
