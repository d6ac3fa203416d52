import { proxyActivities } from '@temporalio/workflow';
import { deliverSlowQueue } from '../deliver-event/types.ts';
import type { SendTestInput, TestActivities, TestResult } from './types.ts';

// One try: whoever asked sees what came of it and asks again. The slow queue, so that tests stand behind no event and no event behind them.
const { postTest } = proxyActivities<TestActivities>({
  startToCloseTimeout: '20s',
  retry: { maximumAttempts: 1 },
  taskQueue: deliverSlowQueue,
});

/** Sends one signed test event, also to a parked webhook: that is the probe before it is resumed. It stands outside ledger and sequence. Null when the webhook is deleted. */
export async function sendTest(input: SendTestInput): Promise<TestResult | null> {
  return postTest(input);
}
