import type { EntityManager } from '@mikro-orm/postgresql';
import { numbered, query, runStatement } from '../db/statement.ts';
import { redeliverOneSql } from '../db/statements/redeliveries.ts';
import { assertMayUse, noSuchWebhook, recordWebhookActivity, type WebhookRequest, webhookDeleted } from './access.ts';
import { deliverySettled } from './cancel-delivery.ts';
import { type DeliveryState, noSuchDelivery } from './deliveries.ts';
import { redeliverableDays } from './limits.ts';
import { WebhookRefused } from './refused.ts';

/** A delivery sent again. `retry_now`: notify its workflow; `queued`: the relay starts one. */
export interface Redelivered {
  eventId: string;
  round: number;
  how: 'queued' | 'retry_now';
}

/**
 * Sends one event to one webhook again, with the same event id, in one transaction with its
 * activity row. A settled delivery begins a new round; an open one is due now.
 *
 * @param canRetryNow - whether the caller can notify a running workflow; if not, a delivery whose
 * workflow runs is refused.
 * @param onlyOpen - whether a settled one is refused: a request for the next attempt must not send
 * a delivered event again.
 * @throws WebhookRefused when the caller may not, the webhook is parked or deleted, it has no
 * delivery of this event or that was cancelled, the event is older than 30 days, or the delivery is
 * open and the caller cannot notify its workflow.
 */
export async function redeliverOne(
  em: EntityManager,
  input: WebhookRequest & { eventId: string },
  { canRetryNow, onlyOpen = false }: { canRetryNow: boolean; onlyOpen?: boolean },
): Promise<Redelivered> {
  const { organizationId, webhookId, eventId } = input;
  return em.fork().transactional(async (tx) => {
    await assertSendable(tx, input);
    const found = await findForRedelivery(tx, input);
    assertRedeliverable(found, { canRetryNow, onlyOpen });
    const values = [organizationId, webhookId, eventId];
    const [row] = await runStatement<{ round: number; started: boolean }>(tx, numbered(redeliverOneSql, values));
    if (row === undefined) throw noSuchDelivery();
    const { round, started } = row;
    const action = onlyOpen ? 'delivery.retry' : 'delivery.redeliver';
    await recordWebhookActivity(tx, input, action, { eventId, round });
    return { eventId, round, how: started ? 'retry_now' : 'queued' };
  });
}

interface FoundForRedelivery {
  state: DeliveryState;
  started: boolean;
  isTooOld: boolean;
}

function assertRedeliverable(
  found: FoundForRedelivery | null,
  { canRetryNow, onlyOpen }: { canRetryNow: boolean; onlyOpen: boolean },
): asserts found is FoundForRedelivery {
  if (found === null) throw noSuchDelivery();
  if (found.state === 'cancelled')
    throw new WebhookRefused('delivery_cancelled', 'This delivery was cancelled. You can’t redeliver it.');
  if (onlyOpen && found.state !== 'waiting') throw deliverySettled(found.state);
  if (found.isTooOld) throw eventTooOld();
  if (found.state === 'waiting' && found.started && !canRetryNow) {
    throw new WebhookRefused(
      'delivery_open',
      'Sending is temporarily unavailable. This delivery is retried when sending is available again.',
    );
  }
}

/** @throws WebhookRefused when the caller may not, or the webhook cannot send. */
export async function assertSendable(tx: EntityManager, request: WebhookRequest): Promise<void> {
  const webhook = await assertMayUse(tx, request);
  if (webhook === null) throw noSuchWebhook();
  if (webhook.state === 'deleted') throw webhookDeleted();
  if (webhook.state === 'parked') throw webhookParked();
}

async function findForRedelivery(tx: EntityManager, delivery: WebhookRequest & { eventId: string }) {
  const { organizationId, webhookId, eventId } = delivery;
  const rows = await query<FoundForRedelivery>(tx)`
    select d.state, d.created_at < ${oldestRedeliverable(new Date()).toISOString()}::timestamptz as "isTooOld",
      d.started and d.epoch = w.epoch as started
    from delivery d join webhook w on w.organization_id = d.organization_id and w.id = d.webhook_id
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}
    for no key update of d`;
  return rows[0] ?? null;
}

/** Returns the time before which events can no longer be sent again. */
export const oldestRedeliverable = (now: Date) => new Date(now.getTime() - redeliverableDays * 86_400_000);

const webhookParked = () =>
  new WebhookRefused(
    'webhook_parked',
    'This webhook is paused or suspended. Resume it first, which sends held deliveries.',
  );

/** The refusal of an event that is too old. */
export const eventTooOld = () =>
  new WebhookRefused('event_too_old', `You can redeliver only events of the last ${redeliverableDays} days.`);
