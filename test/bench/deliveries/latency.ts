import { addOrganizations } from './changes.ts';
import { measureBareLatency, measureLatency, percentile } from './measures.ts';
import type { BenchOptions, Store } from './options.ts';
import { type Result, storeWords } from './results.ts';
import type { BenchStack } from './stack.ts';

const organizationCount = 10;

/**
 * Measures the time from commit to the receiver's first byte at a steady pace, in three stretches
 * of org-api. Each bare side has two stretches between them.
 */
export async function measureLatencies(
  stack: BenchStack,
  store: Store,
  { latencyEvents, latencyPerSecond }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const organizations = await addOrganizations(stack, organizationCount);
  // not counted: new connections, compilation
  await measureLatency(stack, organizations, 2 * latencyPerSecond, latencyPerSecond);
  const times: number[] = [];
  const bare = { bareDelivery: [] as number[], bareLocalDelivery: [] as number[] };
  for (let stretch = 0; stretch < 3; stretch += 1) {
    times.push(...(await measureLatency(stack, organizations, Math.round(latencyEvents / 3), latencyPerSecond)));
    for (const workflow of stretch < 2 ? (['bareDelivery', 'bareLocalDelivery'] as const) : []) {
      const count = Math.round(latencyEvents / 6);
      bare[workflow].push(...(await measureBareLatency(stack, workflow, count, latencyPerSecond)));
    }
    report(`latency, stretch ${stretch + 1} of 3: ${describe(times)}`);
  }
  const aim = store === 'memory' ? '; aim p50 at most 20 ms' : '';
  return {
    title: `commit to the receiver's first byte at ${latencyPerSecond}/s, ${storeWords[store]}`,
    headline: `${describe(times)}${aim}`,
    details: [
      `${times.length} events, least ${Math.min(...times).toFixed(1)} ms, most ${Math.max(...times).toFixed(1)} ms`,
      `bare, from asking for the start to the first byte: ${describe(bare.bareDelivery)} ` +
        `(${bare.bareDelivery.length} of them)`,
      `bare local, the same: ${describe(bare.bareLocalDelivery)} (${bare.bareLocalDelivery.length} of them)`,
    ],
  };
}

/** `p50 12.3 ms, p99 45.6 ms`. */
export function describe(values: readonly number[]): string {
  return `p50 ${percentile(values, 0.5).toFixed(1)} ms, p99 ${percentile(values, 0.99).toFixed(1)} ms`;
}
