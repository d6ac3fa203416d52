/** Pages that one session keeps open many times at once, and how long another organization waits. */
import { expect, it, onTestFinished } from 'vitest';
import { startApp } from '#test/child-app.ts';
import { consoleEnvironment } from '#test/setup.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { pathIn } from '../security/console/requests.ts';
import { arrange, type Scene } from '../security/console/scene.ts';
import { keepConnection } from './kept-connection.ts';
import { addManyRows } from './page-rows.ts';
import { setupConsole } from './setup.ts';

/** Requests that the session keeps in progress. */
const atOnce = 30;
/** Of each round, disturbed and undisturbed. */
const samples = 5;
/** A page passes in its first round within the bound: other work of the machine may spoil some. */
const maxRounds = 10;

const pagesOfOthers = ['showOverview', 'listKeys', 'listMembers', 'listAuditEntries'];

it('while one session keeps 30 requests for a page in progress, another organization’s pages take twice their time at most', {
  timeout: 240_000,
}, async () => {
  const t = await setup();
  const ratios: [page: string, ratio: number][] = [];
  for (const route of routes.filter(({ method }) => method === 'GET'))
    ratios.push([route.name, await t.measure(route)]);
  expect(ratios.filter(([, ratio]) => ratio > 2)).toEqual([]);
  expect(t.shown.size).toBeGreaterThan(ratios.length * 0.8);
});

async function setup() {
  const t = await setupConsole();
  const [busy, other] = [await arrange(t, 'Harbor'), await arrange(t, 'Meadow')];
  await addManyRows(t.owner, busy);
  await addManyRows(t.owner, other);
  await t.owner.pool.query('analyze');
  const { origin, database } = t;
  const app = await startApp('console', consoleEnvironment(database, origin));
  const { host } = new URL(origin);
  const buildHeaders = ({ owner }: Scene) => ({
    host,
    cookie: `${cookieName('session', origin)}=${owner.sessionToken}`,
  });
  const openConnection = (scene: Scene) => {
    const connection = keepConnection(app.url, buildHeaders(scene));
    onTestFinished(() => void connection.close());
    return connection;
  };
  const ofOther = openConnection(other);
  const ofBusy = Array.from({ length: atOnce }, () => openConnection(busy));

  const getPath = (name: string, scene: Scene) => {
    const route = routes.find((each) => each.method === 'GET' && each.name === name) as Route;
    return pathIn(route, scene);
  };

  /** Opens the other organization's pages one after another; returns their time together. */
  async function visitAsOther(): Promise<number> {
    const startedAt = performance.now();
    for (const name of pagesOfOthers) expect([name, await ofOther.get(getPath(name, other))]).toEqual([name, 200]);
    return performance.now() - startedAt;
  }

  async function medianTime(): Promise<number> {
    const times: number[] = [];
    while (times.length < samples) times.push(await visitAsOther());
    return times.sort((one, two) => one - two)[(samples - 1) / 2] ?? Number.NaN;
  }

  /** Keeps requests for a page in progress. @returns a function that ends it, with what it got. */
  function flood(path: string): () => Promise<Set<number>> {
    let isOver = false;
    const statuses = new Set<number>();
    const requests = ofBusy.map(async ({ get }) => {
      while (!isOver) statuses.add(await get(path));
    });
    return async () => {
      isOver = true;
      for (const { close } of ofBusy) close(); // what waits is not read
      await Promise.all(requests);
      return statuses;
    };
  }

  const shown = new Set<string>();
  for (let visit = 0; visit < 10; visit += 1) await visitAsOther();
  return {
    /** The pages that were shown to the busy session, and not rejected or redirected. */
    shown,
    /** Returns the best ratio of disturbed to undisturbed time, in rounds of both. */
    async measure(route: Route): Promise<number> {
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < maxRounds && best > 2; round += 1) {
        const undisturbed = await medianTime();
        const end = flood(getPath(route.name, busy));
        const disturbed = await medianTime();
        const statuses = await end();
        if (statuses.has(200)) shown.add(route.name);
        best = Math.min(best, disturbed / undisturbed);
      }
      return best;
    },
  };
}
