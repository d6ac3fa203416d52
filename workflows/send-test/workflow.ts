import { proxyActivities } from '@temporalio/workflow';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from './types.ts';

// One try: the caller sees the result and may ask again. No local activities: a receiver that hangs would hold a slot
// of a worker that first attempts of deliveries need.
const retry = { maximumAttempts: 1 } as const;
const { postTest } = proxyActivities<TestActivities>({ retry, startToCloseTimeout: '30s' });
const { checkSignatures } = proxyActivities<TestActivities>({ retry, startToCloseTimeout: '40s' });

/**
 * Sends one signed test event, also to a paused or suspended webhook. With `checkSignatures` a
 * wrongly signed one follows, and the result is recorded. Neither is part of the ledger or the
 * sequence. Returns null when the webhook is deleted.
 */
export async function sendTest(input: SendTestInput): Promise<TestResult | SignatureCheck | null> {
  return input.checkSignatures === true ? checkSignatures(input) : postTest(input);
}
