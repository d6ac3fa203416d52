import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { comparable, type Responses, shifted } from '#test/expected-responses.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import type { Pace } from './pace.ts';

/** An organization with enough keys for the load: a key may read 120 times a minute. */
export interface ReadOrganization {
  id: string;
  keys: string[];
}

const timeoutMs = 10_000;

async function read(api: string, orgId: string, resource: string, key: string): Promise<Response> {
  return fetch(`${api}/v1/orgs/${orgId}${resource}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(timeoutMs),
  });
}

/**
 * Reads all nine endpoints of every organization and compares them with independently computed
 * answers. Returns the number of correct responses, and every difference.
 */
export async function compareResponses(options: {
  api: string;
  organizations: readonly ReadOrganization[];
  expectedFile: string;
  shiftedDays: number;
}): Promise<{ right: number; wrong: string[] }> {
  const { api, organizations, expectedFile, shiftedDays } = options;
  const expected = JSON.parse(readFileSync(expectedFile, 'utf8')) as Record<string, Responses>;
  const wrong: string[] = [];
  let right = 0;
  for (const { id, keys } of organizations) {
    for (const { operationId, resource } of endpoints) {
      const response = await read(api, id, resource, keys[0] ?? '');
      const body = response.ok ? comparable(operationId, await response.json()) : null;
      if (isDeepStrictEqual(body, shifted(expected[id]?.[operationId], shiftedDays))) right += 1;
      else wrong.push(`${operationId} of ${id} answered ${response.status} and not what was expected`);
    }
  }
  return { right, wrong };
}

/**
 * Results of a load of reads. `failures` contains the time of each, to compare with the operations.
 */
export interface ReadFigures {
  reads: number;
  failed: number;
  failures: string[];
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

const shownFailures = 20;

/**
 * Reads at the pace of the machine over kept connections until stopped, with organizations,
 * operations and keys in turn. A response other than 200 or a missing response is a failure; no read is repeated.
 */
export function startReads(options: {
  api: string;
  organizations: readonly ReadOrganization[];
  /** The highest rate. */
  perSecond: number;
  /** Gets the duration of each response. */
  pace: Pace;
  /** The current operation, which failures name. */
  doing: () => string;
  /** Returns what the log has of a request that failed, by its id. */
  explain: (requestId: string) => Promise<string>;
}) {
  const { api, organizations, perSecond, pace, doing, explain } = options;
  const targets = organizations.flatMap(({ id, keys }) => keys.map((key) => ({ id, key })));
  const figures = { reads: 0, failed: 0 };
  const shown: { text: string }[] = [];
  const durationsMs: number[] = [];
  const underWay = new Set<Promise<void>>();

  function one(): void {
    const number = figures.reads;
    figures.reads += 1;
    const target = targets[number % targets.length];
    const endpoint = endpoints[Math.floor(number / targets.length) % endpoints.length];
    if (target === undefined || endpoint === undefined) return;
    const startedAt = performance.now();
    const promise = read(api, target.id, endpoint.resource, target.key)
      .then(async (response) => {
        await response.arrayBuffer();
        ended(startedAt);
        if (response.status === 200) return;
        const failure = fail(`${endpoint.operationId} answered ${response.status}`);
        // At once: the pod may soon be gone, with its log.
        if (failure !== null) failure.text += `: ${await explain(response.headers.get('request-id') ?? '')}`;
      })
      .catch((error: Error & { cause?: { code?: string } }) => {
        ended(startedAt);
        fail(`${endpoint.operationId}: ${error.cause?.code ?? error.message}`);
      })
      .finally(() => underWay.delete(promise));
    underWay.add(promise);
  }

  function ended(startedAt: number): void {
    const durationMs = performance.now() - startedAt;
    durationsMs.push(durationMs);
    pace.answered(durationMs);
  }

  /** Returns the failure when it is among those that are shown. */
  function fail(what: string): { text: string } | null {
    figures.failed += 1;
    if (shown.length >= shownFailures) return null;
    const failure = { text: `${new Date().toISOString()} during "${doing()}": ${what}` };
    shown.push(failure);
    return failure;
  }

  const end = pace.repeat(perSecond, one);
  return {
    async stop(): Promise<ReadFigures> {
      end();
      await Promise.all(underWay);
      const sorted = durationsMs.sort((a, b) => a - b);
      const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
      const failures = shown.map(({ text }) => text);
      return { ...figures, failures, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: Math.round(sorted.at(-1) ?? 0) };
    },
  };
}
