/**
 * Clients that do not read their responses hold a bounded amount of a pod's memory for a few seconds,
 * and others are answered meanwhile. `roster-order.test.ts` and `readers-at-once.test.ts` have the
 * bounds of how long others wait, as counts.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import type { ChildApp } from '#test/child-app.ts';
import { exchange } from '#test/exchange.ts';
import { setupDatabase } from '#test/setup.ts';
import { startChildApi } from '../child-api.ts';
import { readFigures, untilFigures } from './figures.ts';
import { openMemoryProbe, peakMiB, probed } from './memory-probe.ts';
import { giveGrants, openReader } from './readers.ts';

vi.setConfig({ testTimeout: 480_000 });

/** The memory limit of the chart is 512 Mi. */
const mostMiB = 400;
/**
 * What may be reserved for large bodies: three quarters of RESPONSE_MEMORY_MIB (128), 40 % of it for a key and
 * 60 % for an organization. Each key reserves 12 MiB while its roster is made.
 */
const mostReservedMiB = { key: 38.4, organization: 57.6, process: 96 };
/** What the two encoders of the process, or the one of an organization, reserve beyond, without waiting for it. */
const encodersMiB = { key: 1, organization: 1, process: 2 };
/** What may be left of it: two rosters of 20,000 grants are more. */
const mostLeftMiB = 8;
/** Attacks in turn, so that memory that stays in use adds up. */
const rounds = 2;
/** Reads of other keys in each of them. */
const readsOfOthers = 1_200;

interface Bystander {
  path: string;
  key: string;
}

/**
 * Starts an API process with organizations of 20,000 grants and keys of each, and other
 * organizations that read beside them.
 */
async function setupPod(organizations: number, keysEach: number) {
  const { database, owner, make } = await setupDatabase();
  const creators = await Promise.all(Array.from({ length: organizations }, () => make.member()));
  for (const creator of creators) await giveGrants(owner, creator);
  const attackers: Bystander[] = [];
  for (let n = 0; n < keysEach; n += 1)
    for (const creator of creators)
      attackers.push({ path: `/v1/orgs/${creator.orgId}/clients`, key: (await make.apiKey({ creator })).key });
  const others: Bystander[] = [];
  // Enough keys that a fast machine reads all rounds within a minute without reaching a rate limit.
  for (let n = 0; n < 60; n += 1) {
    const { key, orgId } = await make.apiKey();
    others.push({ key, path: `/v1/orgs/${orgId}` });
  }
  return { api: await startChildApi(database, probed), owner, attackers, others };
}

/**
 * Reads with other keys in turn, a few at a time; returns how many were answered. On a machine that has
 * too much to do, a read gets 503 after its 5 s, and nothing else.
 */
async function readAsOthers(api: ChildApp, others: Bystander[], times: number): Promise<number> {
  let answered = 0;
  for (let n = 0; n < times; n += 4) {
    const batch = Array.from({ length: 4 }, async (_, index) => {
      const { key, path } = others[(n + index) % others.length] as Bystander;
      const { status } = await exchange(api.url + path, { headers: { authorization: `Bearer ${key}` } });
      expect([200, 503]).toContain(status);
      if (status === 200) answered += 1;
    });
    await Promise.all(batch);
  }
  return answered;
}

/**
 * Counts the statements of large bodies that run, and what the pod has reserved, until it is stopped; returns
 * the most of both at a time.
 */
function watchLargeBodies(owner: Database, metricsUrl: string) {
  let isStopped = false;
  const most = { statements: 0, reservedMiB: 0 };
  const watching = (async () => {
    while (!isStopped) {
      const { rows } = await owner.pool.query<{ count: number }>(
        `select count(*)::int as count from pg_stat_activity where datname = current_database()
           and application_name = 'org-api' and state = 'active' and query like '%tag.etag%'`,
      );
      most.statements = Math.max(most.statements, rows[0]?.count ?? 0);
      const { large = 0 } = (await readFigures(metricsUrl)).heldBytesBySize;
      most.reservedMiB = Math.max(most.reservedMiB, large / 1_048_576);
      await wait(20);
    }
  })();
  const stop = async () => {
    isStopped = true;
    await watching;
    return most;
  };
  onTestFinished(async () => void (await stop()));
  return stop;
}

const isFree = ({ heldBytes, waiting }: { heldBytes: number; waiting: number }) => heldBytes === 0 && waiting === 0;

// One key is another in each round, and twelve are two sets by turns: keys that have used up their rate
// are rejected.
it.each([
  { who: 'one key', level: 'key', encoding: 'identity', organizations: 1, keysEach: rounds, each: 1 },
  { who: 'one key', level: 'key', encoding: 'gzip', organizations: 1, keysEach: rounds, each: 1 },
  {
    who: 'twelve keys of one organization',
    level: 'organization',
    encoding: 'identity',
    organizations: 1,
    keysEach: 24,
    each: 12,
  },
  { who: 'six organizations', level: 'process', encoding: 'identity', organizations: 6, keysEach: 4, each: 12 },
  { who: 'six organizations', level: 'process', encoding: 'gzip', organizations: 6, keysEach: 4, each: 12 },
] as const)(
  '300 connections of $who that ask for 20,000 grants in $encoding and read nothing leave the process under ' +
    '400 MB, none of it in use afterwards, and other keys are answered',
  async (attack) => {
    const { api, owner, attackers, others } = await setupPod(attack.organizations, attack.keysEach);
    const headers = { 'accept-encoding': attack.encoding };
    const measure = await openMemoryProbe(api);
    await readAsOthers(api, others, 320);
    const beforeMiB = await measure();
    const stopWatching = watchLargeBodies(owner, api.metricsUrl);
    let answered = 0;
    for (let round = 0; round < rounds; round += 1) {
      const opened = Array.from({ length: 300 }, (_, n) => {
        const attacker = attackers[(round * attack.each + (n % attack.each)) % attackers.length] as Bystander;
        return openReader(api.url, { ...attacker, headers, bytesPerSecond: 0 });
      });
      answered += await readAsOthers(api, others, readsOfOthers);
      const readers = await Promise.all(opened);
      // The last ones stay, until the pod disconnects them.
      if (round < rounds - 1) for (const { socket } of readers) socket.destroy();
      await untilFigures(api.metricsUrl, isFree, 90_000);
    }
    const most = await stopWatching();
    let leftMiB = Number.NaN;
    // What a collection found is freed by another thread, which a busy machine lets wait.
    const measureLeft = async () => {
      leftMiB = (await measure()) - beforeMiB;
      return leftMiB;
    };
    await expect.poll(measureLeft, { timeout: 60_000, interval: 500 }).toBeLessThan(mostLeftMiB);
    console.log(
      `    ${attack.who}, ${attack.encoding}: ${peakMiB(api).toFixed(0)} MiB at most, ` +
        `${most.reservedMiB.toFixed(0)} reserved, ${leftMiB.toFixed(1)} left`,
    );
    expect(most.statements).toBe(1);
    // Peaks alone do not show that this limit is gone: the system takes most of each body for its client.
    const encoders = attack.encoding === 'identity' ? 0 : encodersMiB[attack.level];
    expect(most.reservedMiB).toBeLessThanOrEqual(mostReservedMiB[attack.level] + encoders);
    expect(answered).toBeGreaterThan(rounds * readsOfOthers * 0.95);
    expect(peakMiB(api)).toBeLessThan(mostMiB);
  },
);

it('300 connections that request the OpenAPI document and the reference and read nothing share one byte limit and are disconnected', async () => {
  const { api, others } = await setupPod(0, 0);
  await readAsOthers(api, others, 320);
  const paths = ['/v1/openapi.json', '/docs'];
  const readers = Array.from({ length: 300 }, (_, n) =>
    // Sends enough requests on one connection that the system's buffers cannot hold all responses.
    openReader(api.url, { path: paths[n % 2] as string, bytesPerSecond: 0, times: 10 }),
  );
  await Promise.all(readers);
  expect(await readAsOthers(api, others, 400)).toBeGreaterThan(380);
  const { connections } = await untilFigures(api.metricsUrl, (figures) => figures.connections < 120);
  console.log(`    ${peakMiB(api).toFixed(0)} MiB at most; ${connections} connections left`);
  expect(peakMiB(api)).toBeLessThan(mostMiB);
});
