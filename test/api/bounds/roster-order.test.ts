/**
 * How long rosters delay other reads, as counts and order: how many are made at once, which is made
 * next, and what is answered before one of them ends.
 */
import { expect, it } from 'vitest';
import type { MadeKey } from '#test/make.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { gateRosters } from './gate-rosters.ts';
import { newResponse, setupReader } from './setup-reader.ts';

/** Sets up organizations whose rosters begin and do not end, and another that has no large body. */
async function setupRosters(keyCounts: readonly number[], databasePoolMax: number) {
  const { owner, make, keys, read, bodyReader } = await setupReader(keyCounts, databasePoolMax);
  const other = await make.apiKey();
  const gate = await gateRosters(owner, [...new Set(keys.map(({ orgId }) => orgId))]);
  return {
    keys,
    gate,
    readRoster: (key: MadeKey) => read(key, newResponse(), null),
    untilWaiting: (count: number) => expect.poll(() => bodyReader.state.waiting, { timeout: 30_000 }).toBe(count),
    /** Sends all nine reads of the other organization at once, which must have their bodies. */
    async readOther(): Promise<void> {
      const reads = endpoints.map((endpoint) => read(other, newResponse(), null, endpoint));
      for (const { content } of await Promise.all(reads)) expect(content?.body).toEqual(expect.any(String));
    },
  };
}

it('with ten connections one roster is made at a time, organizations take turns, and nine reads of another are answered before each ends', async () => {
  const { keys, gate, readRoster, untilWaiting, readOther } = await setupRosters([4, 1, 1], 10);
  const rosters: Promise<unknown>[] = [];
  for (const [index, key] of keys.entries()) {
    rosters.push(readRoster(key));
    await untilWaiting(index);
  }

  const order: number[] = [];
  for (const _ of keys) {
    const [next = ''] = await gate.until(1);
    await readOther();
    expect(await gate.listWaiting()).toEqual([next]);
    order.push([...new Set(keys.map(({ orgId }) => orgId))].indexOf(next));
    await gate.pass(next);
  }
  expect(order).toEqual([0, 0, 1, 2, 0, 0]);
  await Promise.all(rosters);
});

it('with forty connections four rosters are made at a time, each of another organization', async () => {
  const { keys, gate, readRoster, untilWaiting, readOther } = await setupRosters([2, 2, 2, 2, 2, 2], 40);
  const rosters = keys.map(readRoster);
  for (let passed = 0; passed < 4; passed += 1) {
    await untilWaiting(keys.length - passed - 4);
    const organizations = await gate.until(4);
    await readOther();
    expect(await gate.listWaiting()).toEqual(organizations);
    expect(new Set(organizations).size).toBe(4);
    await gate.pass(organizations[0] ?? '');
  }
  await gate.open();
  await Promise.all(rosters);
});
