import type { EntityManager } from '@mikro-orm/postgresql';
import { WebhookSecret } from '../db/entities/webhook.ts';
import { numbered, runStatement } from '../db/statement.ts';
import { cancelWebhookDeliveriesSql, countOpenDeliveriesSql } from '../db/statements/park-webhooks.ts';
import { lockLivingWebhook, lockWebhook, recordWebhookActivity, type WebhookRequest } from './access.ts';
import { deliveriesPerMove } from './limits.ts';

/**
 * Pausing, resuming and deleting change the webhook's row, which stops or allows every claim and
 * attempt. Its open deliveries count as parked because the webhook is. The maintenance loop starts
 * those again that were started before, and cancels those of a deleted webhook.
 */

/** The number of open deliveries of the changed webhook, up to 10,000. */
export interface MovedDeliveries {
  deliveries: number;
}

/**
 * Pauses a webhook: nothing is sent to it until it is resumed, and nothing is lost. An attempt in
 * progress ends by itself. Pausing one that is paused or suspended changes nothing and is not
 * recorded, except that a cluster object turns a suspension into its own pause, which it can
 * end.
 *
 * @throws WebhookRefused when the caller may not, or the webhook is deleted.
 */
export async function pauseWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    const isChanged = webhook.managedUid === null ? webhook.pause() : webhook.hold();
    return isChanged ? recordState(tx, request, 'webhook.pause') : { deliveries: 0 };
  });
}

/**
 * Resumes a paused or suspended webhook: one delivery at a time at first, and twice as many after
 * each that is accepted. Its failures are cleared, so that the time until suspension begins again.
 * Resuming an active webhook changes nothing and is not recorded.
 *
 * The signed probe before a resume is the caller's step: a post takes seconds, and no transaction
 * stays open for it.
 *
 * @throws WebhookRefused when the caller may not, or the webhook is deleted.
 */
export async function resumeWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    return webhook.resume() ? recordState(tx, request, 'webhook.resume') : { deliveries: 0 };
  });
}

/**
 * Deletes a webhook: its open deliveries are cancelled, with an activity row that counts them, its
 * secrets are deleted, and its slot is free. The record of what was sent stays. Deleting it again
 * changes nothing and is not recorded.
 *
 * @throws WebhookRefused when the caller may not, or there is no such webhook.
 */
export async function deleteWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockWebhook(tx, request);
    if (!webhook.delete()) return { deliveries: 0 };
    const { organizationId, webhookId } = request;
    const moved = await recordState(tx, request, 'webhook.delete');
    await tx.nativeDelete(WebhookSecret, { organizationId, webhookId });
    // Deliveries of an object's webhook are left to the maintenance loop: the operator's login may
    // change none.
    const { by } = request;
    if (by !== 'operator' && 'objectUid' in by) return moved;
    const cancel = numbered(cancelWebhookDeliveriesSql, [deliveriesPerMove, organizationId, webhookId]);
    for (const { deliveries } of await runStatement<MovedDeliveries>(tx, cancel))
      await recordWebhookActivity(tx, request, 'delivery.cancel', { deliveries });
    return moved;
  });
}

/** Writes the webhook's new state with its activity row, and counts its open deliveries. */
async function recordState(tx: EntityManager, request: WebhookRequest, action: string): Promise<MovedDeliveries> {
  await tx.flush();
  const { organizationId, webhookId } = request;
  const [row] = await runStatement<MovedDeliveries>(tx, numbered(countOpenDeliveriesSql, [organizationId, webhookId]));
  const { deliveries = 0 } = row ?? {};
  await recordWebhookActivity(tx, request, action, { deliveries });
  return { deliveries };
}
