/**
 * The workflows of the bare sides: one activity, with org-api's time limit and Temporal's retries,
 * as in a plain program.
 */
import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

export interface BareInput {
  eventId: string;
}

interface BareActivities {
  post(input: BareInput): Promise<void>;
}

const options = { startToCloseTimeout: '20s' } as const;
const asTask = proxyActivities<BareActivities>(options);
const local = proxyLocalActivities<BareActivities>(options);

/** Its post is a separate task of the server. */
export async function bareDelivery(input: BareInput): Promise<void> {
  await asTask.post(input);
}

/** Its post is made inside the workflow's first task, like org-api's first attempt. */
export async function bareLocalDelivery(input: BareInput): Promise<void> {
  await local.post(input);
}
