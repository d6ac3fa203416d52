import type { Client } from '@temporalio/client';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { ReplayResult } from '#workflows/rollout/types.ts';

/** Types whose workflows outlive a release. */
const replayedTypes = ['deliverEvent', 'redeliver'] as const;
const longestError = 300;

interface ReplaySampleOptions {
  client: Client;
  /** The workflow code that replays. */
  workflowBundle: WorkflowBundleWithSourceMap;
  /** How many open and how many closed histories of each type. */
  sampleSize: number;
  /** Called after each history. */
  onReplayed?: () => void;
}

/** Replays a sample of the namespace's histories, newest first. No activity is carried out. */
export async function replaySample(options: ReplaySampleOptions): Promise<ReplayResult> {
  const { workflowBundle, onReplayed = () => {} } = options;
  const result: ReplayResult = { replayed: 0, failed: 0, firstFailure: null };
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, readHistories(options))) {
    onReplayed();
    if (error === undefined) {
      result.replayed += 1;
      continue;
    }
    result.failed += 1;
    // The SDK's messages name events, activities and ids of the history; it contains nothing else.
    result.firstFailure ??= { workflowId, error: error.message.slice(0, longestError) };
  }
  return result;
}

async function* readHistories({ client, sampleSize }: ReplaySampleOptions) {
  for (const type of replayedTypes)
    for (const status of [`= 'Running'`, `!= 'Running'`]) {
      const query = `WorkflowType = '${type}' AND ExecutionStatus ${status}`;
      let count = 0;
      for await (const { workflowId, runId } of client.workflow.list({ query, pageSize: sampleSize })) {
        yield { workflowId, history: await client.workflow.getHandle(workflowId, runId).fetchHistory() };
        count += 1;
        if (count === sampleSize) break;
      }
    }
}
