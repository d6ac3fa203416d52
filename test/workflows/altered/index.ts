import { sleep } from '@temporalio/workflow';
import type { DeliverEventInput, DeliveryEnd } from '../../../workflows/deliver-event/types.ts';
import { deliverEvent as today } from '../../../workflows/deliver-event/workflow.ts';

/** Today's workflow with a change that workflows under way do not survive: one more timer. */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliveryEnd> {
  await sleep(1);
  return today(input);
}
