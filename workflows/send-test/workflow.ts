import { proxyActivities } from '@temporalio/workflow';
import { deliverSlowQueue } from '../deliver-event/types.ts';
import type { SendTestInput, SignatureCheck, TestActivities, TestResult } from './types.ts';

// One try: the caller sees the result and may ask again. The slow queue, so that tests and events
// do not delay each other.
const once = { retry: { maximumAttempts: 1 }, taskQueue: deliverSlowQueue } as const;
const { postTest } = proxyActivities<TestActivities>({ ...once, startToCloseTimeout: '20s' });
const { checkSignatures } = proxyActivities<TestActivities>({ ...once, startToCloseTimeout: '30s' });

/**
 * Sends one signed test event, also to a parked webhook. With `checkSignatures` a wrongly signed
 * one follows, and the result is recorded. Neither is part of the ledger or the sequence. Returns
 * null when the webhook is deleted.
 */
export async function sendTest(input: SendTestInput): Promise<TestResult | SignatureCheck | null> {
  return input.checkSignatures === true ? checkSignatures(input) : postTest(input);
}
