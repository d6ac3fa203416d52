import { proxyActivities } from '@temporalio/workflow';
import type { DeliverEventInput, DeliveryActivities } from '../../../workflows/deliver-event/types.ts';

/** Waits for an activity on a queue of its input, which no worker polls. */
export async function deliverEvent({ queue, ...input }: DeliverEventInput & { queue: string }): Promise<void> {
  const { attemptDelivery } = proxyActivities<DeliveryActivities>({ startToCloseTimeout: '20s', taskQueue: queue });
  await attemptDelivery({ ...input, nextDelayMs: null, internalErrors: 0 });
}

export { deliverEvent as redeliver };
