/** The workflow of the bare side: one activity, with the time of ours and Temporal's own retries, as a plain program would have it. */
import { proxyActivities } from '@temporalio/workflow';

export interface BareInput {
  eventId: string;
}

const { post } = proxyActivities<{ post(input: BareInput): Promise<void> }>({
  startToCloseTimeout: '20s',
});

export async function bareDelivery(input: BareInput): Promise<void> {
  await post(input);
}
