import { setTimeout as wait } from 'node:timers/promises';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { type BenchOrganization, commitPaced, prepareChanges } from '../deliveries/changes.ts';
import { visit } from '../growth/measure.ts';
import type { SoakRegion } from './region.ts';
import type { SoakStack } from './stack.ts';

/** Results of the load so far. */
export interface Counts {
  reads: number;
  visits: number;
  deliveries: number;
  /** Requests that were not answered 200, by status or error. */
  failures: Map<string, number>;
}

export interface Load {
  counts: Counts;
  /** Rejects when the load cannot continue. */
  ended: Promise<unknown>;
  /** Resolves when every request was answered and every grant is committed. */
  stop(): Promise<void>;
}

export interface Rates {
  readsPerSecond: number;
  deliveriesPerSecond: number;
  visitsPerSecond: number;
}

const unavailable = 503;
/** Seconds of the load whose grants are prepared at once. */
const chunkSeconds = 10;

/** Starts requests when they are due, whether or not earlier ones were answered. */
export function startLoad(stack: SoakStack, region: SoakRegion, rates: Rates): Load {
  const counts: Counts = { reads: 0, visits: 0, deliveries: 0, failures: new Map() };
  const running = new Set<Promise<void>>();
  let isStopping = false;

  function fail(what: string): void {
    counts.failures.set(what, (counts.failures.get(what) ?? 0) + 1);
  }

  async function read(nth: number): Promise<void> {
    const { operationId, resource } = endpoints[nth % endpoints.length] as (typeof endpoints)[number];
    const { key, organizationId } = region.keys[nth % region.keys.length] as SoakRegion['keys'][number];
    const status = await readFrom(stack.apiUrls, nth, `/v1/orgs/${organizationId}${resource}`, key);
    if (status !== 200) fail(`${operationId}: ${status}`);
    counts.reads += 1;
  }

  async function show(): Promise<void> {
    const { status } = await visit(region.page.url, region.page.cookie);
    if (status !== 200) fail(`console: ${status}`);
    counts.visits += 1;
  }

  async function repeat(perSecond: number, work: (nth: number) => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    for (let nth = 0; !isStopping; nth += 1) {
      const dueInMs = startedAt + (nth * 1_000) / perSecond - performance.now();
      if (dueInMs > 0) await wait(dueInMs);
      const each = work(nth).catch((error: unknown) => fail(String(error)));
      running.add(each);
      void each.finally(() => running.delete(each));
    }
  }

  async function deliver(organizations: readonly BenchOrganization[]): Promise<void> {
    const { pool } = stack.database;
    const { deliveriesPerSecond } = rates;
    while (!isStopping) {
      const changes = await prepareChanges(pool, organizations, Math.ceil(chunkSeconds * deliveriesPerSecond));
      await commitPaced(pool, changes, deliveriesPerSecond);
      await stack.receiver.takePosts(); // so that the receiver does not store them
      counts.deliveries += changes.length;
    }
  }

  const ended = Promise.all([
    repeat(rates.readsPerSecond, read),
    repeat(rates.visitsPerSecond, show),
    deliver(region.organizations),
  ]);
  return {
    counts,
    ended,
    async stop() {
      isStopping = true;
      await ended;
      await Promise.all(running);
    },
  };
}

/**
 * Reads from the two APIs in turn. When an API drops its connection or answers 503, as during a
 * restart, the read is repeated once at the other, as by a load balancer. Returns the status.
 */
async function readFrom(apiUrls: SoakStack['apiUrls'], nth: number, path: string, key: string): Promise<number> {
  const ask = async (apiUrl: string) => {
    const response = await fetch(`${apiUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
    await response.arrayBuffer();
    return response.status;
  };
  const [first, second] = nth % 2 === 0 ? apiUrls : [apiUrls[1], apiUrls[0]];
  const status = await ask(first).catch(() => unavailable);
  return status === unavailable ? ask(second) : status;
}
