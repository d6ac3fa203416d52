import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/statement.ts';
import { assertMayUse, recordWebhookActivity, type WebhookRequest } from './access.ts';
import { type DeliveryState, noSuchDelivery } from './deliveries.ts';
import { WebhookRefused } from './refused.ts';

/** A cancelled delivery. */
interface CancelledDelivery {
  /** The current round: when `started`, its workflow may run and has to end. */
  round: number;
  started: boolean;
}

/**
 * Cancels one open delivery, in one transaction with its activity row, which the ledger compares
 * with. An attempt in progress ends by itself and is recorded; its response changes nothing.
 *
 * The caller notifies the workflow. A workflow that is not notified ends at its next attempt, which
 * is not admitted.
 *
 * @throws WebhookRefused when the caller may not, the webhook is managed by another, it has no such
 * delivery, or that is settled already.
 */
export async function cancelDelivery(
  em: EntityManager,
  input: WebhookRequest & { eventId: string },
): Promise<CancelledDelivery> {
  const { organizationId, webhookId, eventId } = input;
  return em.fork().transactional(async (tx) => {
    await assertMayUse(tx, input);
    const [found] = await query<CancelledDelivery & { state: DeliveryState }>(tx)`
      select d.state, d.round, d.started from delivery d
      where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}
      for no key update`;
    if (found === undefined) throw noSuchDelivery();
    const { state, round, started } = found;
    if (state !== 'waiting') throw deliverySettled(state);
    await query(tx)`
      update delivery set state = 'cancelled', round = round + 1, started = false, claimed = false, leased_until = null,
        next_attempt_at = null, settled_at = clock_timestamp()
      where organization_id = ${organizationId} and webhook_id = ${webhookId} and event_id = ${eventId}`;
    await recordWebhookActivity(tx, input, 'delivery.cancel', { eventId });
    return { round, started };
  });
}

/** Refuses a change that makes sense only while a delivery is open. */
export const deliverySettled = (state: DeliveryState) =>
  new WebhookRefused('delivery_settled', `This delivery is already ${state === 'exhausted' ? 'failed' : state}.`);
