import type { EntityManager } from '@mikro-orm/postgresql';
import { CompiledQuery, sql } from 'kysely';
import { recordActivity } from '../activity/record.ts';
import { mendWebhookSql } from '../db/queries/park-webhooks.ts';
import { askerOf } from '../keys/authority.ts';
import { lockLivingWebhook, lockWebhook, type WebhookRequest } from './access.ts';
import { deliveriesPerMend } from './limits.ts';

/**
 * Pausing, resuming and deleting: the webhook's state changes first, which stops or opens the way for every claim and every attempt, and then its open deliveries
 * follow, as many at once as one statement may move. The maintenance sweep moves the rest, and those that someone else holds, within seconds.
 */

/** How many open deliveries moved with the change; the sweep may move more. */
export interface MovedDeliveries {
  deliveries: number;
}

/**
 * Parks a webhook by a person's wish: nothing is sent to it until it is resumed, and nothing is lost. An attempt under way ends by itself. Pausing one that is parked
 * already changes nothing and writes no second line.
 *
 * @throws WebhookRefused when the caller may not, or the webhook is deleted.
 */
export async function pauseWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    if (webhook.state === 'parked') return { deliveries: 0 };
    await sql`
      update webhook set state = 'parked', parked_reason = 'paused', ramp = null
      where organization_id = ${request.organizationId} and id = ${request.webhookId}`.execute(tx.getKysely());
    return moveDeliveries(tx, request, 'webhook.pause');
  });
}

/**
 * Sends again what a parked webhook has waiting: one delivery at a time at first, and twice as many after each that is accepted. Its failures are forgotten, so that
 * the time until suspension begins again. Resuming an active webhook changes nothing and writes no second line.
 *
 * The signed probe that precedes a resume (design, section 6) is its caller's step: a post takes seconds, and no transaction stays open for it.
 *
 * @throws WebhookRefused when the caller may not, or the webhook is deleted.
 */
export async function resumeWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    if (webhook.state === 'active') return { deliveries: 0 };
    await sql`
      update webhook set state = 'active', parked_reason = null, failing_since = null, ramp = 1
      where organization_id = ${request.organizationId} and id = ${request.webhookId}`.execute(tx.getKysely());
    const moved = await moveDeliveries(tx, request, 'webhook.resume');
    return moved;
  });
}

/**
 * Deletes a webhook for good: its open deliveries end as cancelled, with a line that says how many, its secrets are erased, and its place is free. What was sent stays
 * on record. Deleting a deleted one changes nothing and writes no second line.
 *
 * @throws WebhookRefused when the caller may not, or there is no such webhook.
 */
export async function deleteWebhook(em: EntityManager, request: WebhookRequest): Promise<MovedDeliveries> {
  return em.fork().transactional(async (tx) => {
    const webhook = await lockWebhook(tx, request);
    if (webhook.state === 'deleted') return { deliveries: 0 };
    const { organizationId, webhookId } = request;
    await sql`
      update webhook set state = 'deleted', parked_reason = null, failing_since = null, ramp = null, slot = null
      where organization_id = ${organizationId} and id = ${webhookId}`.execute(tx.getKysely());
    await sql`
      delete from webhook_secret where organization_id = ${organizationId} and webhook_id = ${webhookId}`.execute(
      tx.getKysely(),
    );
    return moveDeliveries(tx, request, 'webhook.delete');
  });
}

async function moveDeliveries(tx: EntityManager, request: WebhookRequest, action: string): Promise<MovedDeliveries> {
  const { organizationId, webhookId, by } = request;
  const asker = askerOf(by);
  const values = [deliveriesPerMend, asker.personId, organizationId, webhookId, asker.address];
  const { rows } = await tx.getKysely().executeQuery<{ deliveries: number }>(CompiledQuery.raw(mendWebhookSql, values));
  const deliveries = rows.reduce((sum, row) => sum + row.deliveries, 0);
  await recordActivity(tx, { organizationId, ...asker, action, detail: { webhookId, deliveries } });
  return { deliveries };
}
