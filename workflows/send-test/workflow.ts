import { proxyActivities } from '@temporalio/workflow';
import { deliverSlowQueue } from '../deliver-event/types.ts';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from './types.ts';

// One try: the caller sees the result and may ask again. The slow queue, so that tests stand
// behind no event and no event behind them.
const once = { retry: { maximumAttempts: 1 }, taskQueue: deliverSlowQueue } as const;
const { postTest } = proxyActivities<TestActivities>({ ...once, startToCloseTimeout: '20s' });
const { checkSignatures } = proxyActivities<TestActivities>({ ...once, startToCloseTimeout: '30s' });

/**
 * Sends one signed test event, also to a parked webhook: that is the probe before it is resumed.
 * With `checkSignatures` a badly signed one follows, and the result is recorded. Both stand
 * outside ledger and sequence. Null when the webhook is deleted.
 */
export async function sendTest(input: SendTestInput): Promise<TestResult | SignatureCheck | null> {
  return input.checkSignatures === true ? checkSignatures(input) : postTest(input);
}
