import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';
import '#test/worker.ts';
import { bundleWorkflows } from '../../apps/worker/relay/temporal.ts';
import { scenarios } from './scenarios.ts';

interface Saved {
  kind: string;
  workflowId: string;
  history: { events: Record<string, unknown>[] };
}

const folder = new URL('histories/', import.meta.url);
const saved: Saved[] = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({
    kind: name.replace(/\.json$/, ''),
    ...(JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Omit<Saved, 'kind'>),
  }));
type Bundle = Awaited<ReturnType<typeof bundleWorkflows>>;

async function replay(workflowBundle: Bundle): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  const kinds = new Map(saved.map(({ workflowId, kind }) => [workflowId, kind]));
  const histories = saved.map(({ workflowId, history }) => ({ workflowId, history }));
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    outcomes[kinds.get(workflowId) ?? workflowId] = error?.name ?? 'replayed';
  }
  return outcomes;
}

describe('saved workflow histories', () => {
  it('are there for every way in which a delivery’s workflow ends', () => {
    expect(saved.map(({ kind }) => kind)).toEqual(scenarios.map(({ kind }) => kind).sort());
  });

  it('are all replayed by today’s code, so that deliveries under way survive its roll-out', async () => {
    expect(await replay(await bundleWorkflows())).toEqual(
      Object.fromEntries(saved.map(({ kind }) => [kind, 'replayed'])),
    );
  });

  it('are not replayed by code that takes other steps, which is how such a change is noticed', async () => {
    const altered = await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('altered/index.ts', import.meta.url)),
      logger: new DefaultLogger('ERROR'),
    });
    const violations = saved.map(({ kind }) => [kind, 'DeterminismViolationError']);
    expect(await replay(altered)).toEqual(Object.fromEntries(violations));
  });

  it.each(saved)('hold ids, numbers and words of our own: $kind', ({ history }) => {
    const values = history.events.flatMap((event) => payloadsOf(event).flatMap(leavesOf));
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((value) => typeof value === 'string' && !isKnown(value))).toEqual([]);
    const said = JSON.stringify(history).match(/"(message|stackTrace|stack)":"[^"]+"/g) ?? [];
    expect(new Set(said)).toEqual(new Set(said.filter((text) => knownTexts.some((known) => text.includes(known)))));
  });
});

const words = new Set(['delivered', 'exhausted', 'closed', 'failed', 'postponed']);
/** All that a failure says: ours, Temporal's own words for a timeout, and for an activity that failed. */
const knownTexts = ['a fault of our own, told in the worker’s log', 'activity StartToClose timeout', 'Activity task'];
const isKnown = (value: string) => words.has(value) || /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value);

/** What our code put into an event, decoded. */
function payloadsOf(node: unknown): unknown[] {
  if (typeof node !== 'object' || node === null) return [];
  const { metadata, data } = node as { metadata?: { encoding?: string }; data?: string };
  if (typeof data === 'string' && metadata?.encoding === Buffer.from('json/plain').toString('base64')) {
    const payload = JSON.parse(Buffer.from(data, 'base64').toString()) as unknown;
    return [payload];
  }
  return Object.values(node).flatMap(payloadsOf);
}

function leavesOf(node: unknown): unknown[] {
  return typeof node === 'object' && node !== null ? Object.values(node).flatMap(leavesOf) : [node];
}
