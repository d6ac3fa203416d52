import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Installation } from './installation.ts';

/** Deliveries that must have failed once in each region before the rollout begins. */
const fewest = 5;
const deadlineMs = 60_000;
/**
 * The longest time without a settled delivery: the longest wait of the schedule (release.ts) with its
 * jitter, the wait for a concurrency slot, and the time for the queue of a webhook.
 */
const standstillMs = 240_000;

type Region = Pick<Installation, 'pool' | 'servers'>;

/**
 * Runs `rollout` while the receiver rejects everything, so that deliveries wait in Temporal across
 * it: they start with workers of one version and end with those of the other. Returns their number
 * after each was delivered.
 * @throws Error when too few waited, or one did not arrive.
 */
export async function acrossRollout(
  options: { regions: readonly Region[]; receiver: string; report: (line: string) => void },
  rollout: () => Promise<void>,
): Promise<void> {
  const { regions, receiver, report } = options;
  const waiting = new Map<Region, string[]>();
  try {
    await ask(receiver, 'for=30m&status=503'); // may have been heard also when it fails
    for (const region of regions) waiting.set(region, await untilFailed(region));
    await rollout();
    for (const region of regions) {
      const still = await stillOpen(region.pool, waiting.get(region) ?? []);
      if (still.length < fewest) throw new Error(`only ${still.length} deliveries waited across the rollout`);
      waiting.set(region, still);
    }
  } finally {
    await ask(receiver, 'for=0s');
  }
  for (const region of regions) {
    const names = waiting.get(region) ?? [];
    await untilDelivered(region.pool, names);
    report(
      `${region.servers.region}: ${names.length} deliveries waited across the rollout and were delivered after it`,
    );
  }
}

async function ask(receiver: string, query: string): Promise<void> {
  const response = await fetch(`${receiver}/fail?${query}`, { method: 'POST' });
  if (response.status !== 200) throw new Error(`the receiver answered ${response.status} when it was asked to fail`);
}

/** Returns the names of the deliveries that wait after a first attempt, once there are enough. */
async function untilFailed({ pool, servers }: Region): Promise<string[]> {
  for (const giveUpAt = performance.now() + deadlineMs; ; await wait(1_000)) {
    const { rows } = await pool.query<{ name: string }>(
      `select d.webhook_id || '/' || d.event_id as name from delivery d where d.settled_at is null and exists (
         select from delivery_attempt a where a.organization_id = d.organization_id and a.webhook_id = d.webhook_id
           and a.event_id = d.event_id and a.finished_at is not null)`,
    );
    if (rows.length >= fewest) return rows.map(({ name }) => name);
    if (performance.now() > giveUpAt)
      throw new Error(`${servers.region}: only ${rows.length} deliveries failed at a receiver that rejects`);
  }
}

async function stillOpen(pool: Pool, names: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select n.name from unnest($1::text[]) n (name) join delivery d on d.webhook_id || '/' || d.event_id = n.name
      where d.settled_at is null`,
    [names],
  );
  return rows.map(({ name }) => name);
}

const untilDelivered = (pool: Pool, names: readonly string[]): Promise<void> =>
  untilNone(
    pool,
    `select count(*)::int as open from unnest($1::text[]) n (name)
     where not exists (select from delivery d where d.webhook_id || '/' || d.event_id = n.name
       and d.state = 'delivered')`,
    [names],
    'were not delivered after they had waited across the rollout',
  );

/** Resolves when every delivery of the region is settled. @throws Error when that stands still. */
export const untilSettled = (pool: Pool): Promise<void> =>
  untilNone(pool, 'select count(*)::int as open from delivery where settled_at is null', [], 'are open');

/** Resolves when a count of deliveries is 0. @throws Error when it has not fallen for too long. */
async function untilNone(pool: Pool, statement: string, values: readonly unknown[], state: string): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let giveUpAt = 0; ; await wait(500)) {
    const { rows } = await pool.query<{ open: number }>(statement, [...values]);
    const open = rows[0]?.open ?? 0;
    if (open === 0) return;
    if (open < fewest) {
      fewest = open;
      giveUpAt = performance.now() + standstillMs;
    }
    if (performance.now() > giveUpAt)
      throw new Error(`${open} deliveries ${state}, and none of them was settled for ${standstillMs / 1000} s`);
  }
}
