import { proxyLocalActivities } from '@temporalio/workflow';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from './types.ts';

// One try: the caller sees the result and may ask again.
const retry = { maximumAttempts: 1 } as const;
const { postTest } = proxyLocalActivities<TestActivities>({ retry, startToCloseTimeout: '20s' });
const { checkSignatures } = proxyLocalActivities<TestActivities>({ retry, startToCloseTimeout: '30s' });

/**
 * Sends one signed test event, also to a paused or suspended webhook. With `checkSignatures` a
 * wrongly signed one follows, and the result is recorded. Neither is part of the ledger or the
 * sequence. Returns null when the webhook is deleted.
 */
export async function sendTest(input: SendTestInput): Promise<TestResult | SignatureCheck | null> {
  return input.checkSignatures === true ? checkSignatures(input) : postTest(input);
}
