import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';
import { eventTypes } from '#domain/contract/events.ts';
import { signatureResultSentences } from '#domain/webhooks/signature-result.ts';
import '#test/worker.ts';
import { causes, getCauseProperties } from '#domain/webhooks/causes.ts';
import { bundleWorkflows } from '#workflows/bundle-sources.ts';
import { scenarios } from './scenarios.ts';

interface Saved {
  kind: string;
  workflowId: string;
  history: { events: Record<string, unknown>[] };
}

const load = (folder: string): Saved[] =>
  readdirSync(new URL(folder, import.meta.url))
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({
      kind: `${folder}${name}`.replace(/^histories\/|\.json$/g, ''),
      ...(JSON.parse(readFileSync(new URL(`${folder}${name}`, import.meta.url), 'utf8')) as Omit<Saved, 'kind'>),
    }));
const saved = load('histories/');
type Bundle = Awaited<ReturnType<typeof bundleWorkflows>>;
const todays = bundleWorkflows();
/** For a machine that is busy with other work while it bundles. */
const timeout = 120_000;

async function replay(workflowBundle: Bundle, those = saved): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  const kinds = new Map(those.map(({ workflowId, kind }) => [workflowId, kind]));
  const histories = those.map(({ workflowId, history }) => ({ workflowId, history }));
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    outcomes[kinds.get(workflowId) ?? workflowId] = error?.name ?? 'replayed';
  }
  return outcomes;
}

describe('saved workflow histories', () => {
  it('exist for every way in which a workflow ends', () => {
    expect(saved.map(({ kind }) => kind)).toEqual(scenarios.map(({ kind }) => kind).sort());
  });

  it('replay with the current code, so that running workflows survive its rollout', { timeout }, async () => {
    expect(await replay(await todays)).toEqual(Object.fromEntries(saved.map(({ kind }) => [kind, 'replayed'])));
  });

  it('fail to replay with code that takes other steps', {
    timeout,
  }, async () => {
    const altered = await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('altered/index.ts', import.meta.url)),
      logger: new DefaultLogger('ERROR'),
    });
    const violations = saved.map(({ kind }) => [kind, 'DeterminismViolationError']);
    expect(await replay(altered)).toEqual(Object.fromEntries(violations));
  });

  it.each(saved)('contain only ids, numbers and known words: $kind', ({ history }) => {
    const values = history.events.flatMap((event) => listPayloads(event).flatMap(listLeaves));
    expect(values.length).toBeGreaterThan(0);
    expect(
      values.filter((value) => typeof value === 'string' && !isKnown(value.replace(/^terminated by new runID: /, ''))),
    ).toEqual([]);
    const said = JSON.stringify(history).match(/"(message|stackTrace|stack)":"[^"]+"/g) ?? [];
    expect(new Set(said)).toEqual(new Set(said.filter((text) => knownTexts.some((known) => text.includes(known)))));
  });
});

describe('the bundle of workflows', () => {
  it('loads each module once for all workflows of a worker', { timeout }, async () => {
    const { code } = await todays;
    const preload = /preloadModules\(\) \{\s*__webpack_require__\([^\n]*"\.\/workflows\/index\.ts"\);\s*\}/;
    expect(preload.test(code)).toBe(true);
  });

  it('has no module that keeps state, because all workflows of a worker share it', { timeout }, async () => {
    const files = [...(await todays).code.matchAll(/^\/\*{3}\/ "\.\/(workflows\/[^"]+\.ts)"/gm)].map(
      ([, file]) => file,
    );
    expect(files).toContain('workflows/deliver-event/workflow.ts');
    const findModuleState = (file = '') =>
      readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
        .match(moduleState)
        ?.map((line) => [file, line]);
    expect(files.flatMap((file) => findModuleState(file) ?? [])).toEqual([]);
  });
});

/** A statement at module level that declares mutable state. */
const moduleState =
  /^(?:export )?(?:let|var)\b.*|^(?:export )?const [^=\n]*= (?:new (?:Weak)?(?:Map|Set)\b|\[\]|\{\}).*/gm;

const words = new Set([
  'end',
  'wait',
  ...eventTypes,
  'attemptDelivery',
  'postTest',
  'checkSignatures',
  // How a receiver answered a test event: a cause with its sentence, and the result.
  ...causes,
  ...causes.map((cause) => getCauseProperties(cause).explanation),
  ...Object.keys(signatureResultSentences),
]);
/**
 * Allowed texts of failures: the project's, Temporal's text for a timeout, and its text for a
 * failed activity.
 */
const knownTexts = ['internal error; see the worker log', 'activity StartToClose timeout', 'Activity task'];
/** A name from the project, an id, or the number of a local activity. */
const isKnown = (value: string) =>
  words.has(value) || /^\d{1,3}$/.test(value) || /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value);

/** The decoded payloads that the workflow code put into an event. */
function listPayloads(node: unknown): unknown[] {
  if (typeof node !== 'object' || node === null) return [];
  const { metadata, data } = node as { metadata?: { encoding?: string }; data?: string };
  if (typeof data === 'string' && metadata?.encoding === Buffer.from('json/plain').toString('base64')) {
    const payload = JSON.parse(Buffer.from(data, 'base64').toString()) as unknown;
    return [payload];
  }
  return Object.values(node).flatMap(listPayloads);
}

function listLeaves(node: unknown): unknown[] {
  return typeof node === 'object' && node !== null ? Object.values(node).flatMap(listLeaves) : [node];
}
