import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import { type DeliveryKey, workflowIdOf } from '#workflows/deliver-event/types.ts';

/** Tells workflows that run. */
export interface DeliverySignals {
  /** Makes a delivery's next attempt now. False when its workflow ended meanwhile; then the reconciler looks after the delivery within a minute or so. */
  retryNow(delivery: DeliveryKey, round: number): Promise<boolean>;
  close(): Promise<void>;
}

const connectTimeoutMs = 5_000;

/** Connects to Temporal. Rejects when it does not answer within 5 s. */
export async function openDeliverySignals(temporal: { address: string; namespace: string }): Promise<DeliverySignals> {
  const connection = await Connection.connect({ address: temporal.address, connectTimeout: connectTimeoutMs });
  const client = new Client({ connection, namespace: temporal.namespace });
  return {
    async retryNow(delivery, round) {
      try {
        await client.workflow.getHandle(workflowIdOf(delivery, round)).signal('retryNow');
        return true;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    },
    close: () => connection.close(),
  };
}
