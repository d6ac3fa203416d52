import { sleep } from '@temporalio/workflow';
import type { DeliverEventInput } from '../../../workflows/deliver-event/types.ts';
import { deliverEvent as today } from '../../../workflows/deliver-event/workflow.ts';
import type { SendTestInput } from '../../../workflows/send-test/types.ts';
import { sendTest as todaysTest } from '../../../workflows/send-test/workflow.ts';

/** The current workflows with a change that running workflows do not survive: one more timer. */
export async function deliverEvent(input: DeliverEventInput): Promise<void> {
  await sleep(1);
  return today(input);
}

export async function sendTest(input: SendTestInput): ReturnType<typeof todaysTest> {
  await sleep(1);
  return todaysTest(input);
}
