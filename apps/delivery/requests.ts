import { CompiledQuery, sql } from 'kysely';
import type { Database, Transaction } from '#domain/db/database.ts';
import {
  assertMayUse,
  lockLivingWebhook,
  lockWebhook,
  recordWebhookEntry,
  type WebhookRequest,
} from '#domain/webhooks/access.ts';
import { deliveryState, noSuchDelivery, type ShownState } from '#domain/webhooks/deliveries.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { assertSendable, eventTooOld, oldestRedeliverable } from '#domain/webhooks/redeliverable.ts';
import { WebhookSecret, type WebhookState } from '#domain/webhooks/webhook.entity.ts';
import {
  type ChangedDeliveriesRow,
  cancelOneSql,
  cancelWebhookDeliveriesSql,
  countOpenDeliveriesSql,
  redeliverOneSql,
} from './sql/requests.ts';

/**
 * What people ask of deliveries and of a webhook's state. Each request is one transaction of
 * PostgreSQL with its audit entry. It asks nothing of Temporal, so it works while Temporal is
 * unavailable: the next claim gives a delivery a new run, and older runs end when they ask.
 */

type DeliveryRequest = WebhookRequest & { eventId: string };

/** A delivery sent again. `attempting`: an attempt is in progress, and nothing was changed. */
export interface Redelivered {
  eventId: string;
  how: 'queued' | 'attempting';
}

/**
 * Sends one event to one webhook again, with the same event id. A settled delivery starts the
 * schedule again; an open one is due now and keeps its position. One whose attempt is in progress
 * stays as it is, and is not recorded.
 *
 * @param onlyOpen - whether a settled one is rejected: a request for the next attempt must not send
 * a delivered event again.
 * @throws WebhookError when the caller may not, the webhook is not active, it has no
 * delivery of this event or that was cancelled, or the event is older than 30 days.
 */
export async function redeliverOne(
  database: Database,
  input: DeliveryRequest,
  { onlyOpen = false }: { onlyOpen?: boolean } = {},
): Promise<Redelivered> {
  const { organizationId, webhookId, eventId } = input;
  return database.change(async (tx) => {
    await assertSendable(tx, input);
    assertRedeliverable(await lockDelivery(tx, input), onlyOpen);
    const values = [organizationId, webhookId, eventId];
    const [row] = await tx.query<Pick<Redelivered, 'how'>>(CompiledQuery.raw(redeliverOneSql, values));
    if (row === undefined) throw noSuchDelivery();
    if (row.how === 'queued')
      await recordWebhookEntry(tx, input, onlyOpen ? 'delivery.retry' : 'delivery.redeliver', { eventId });
    return { eventId, how: row.how };
  });
}

/**
 * Cancels one open delivery; the ledger compares it with its audit entry. An attempt in progress
 * ends by itself and is recorded; the delivery stays cancelled even if it is accepted.
 *
 * @throws WebhookError when the caller may not, the webhook is managed by another, it has no such
 * delivery, or that is settled already.
 */
export async function cancelDelivery(database: Database, input: DeliveryRequest): Promise<void> {
  const { organizationId, webhookId, eventId } = input;
  await database.change(async (tx) => {
    await assertMayUse(tx, input);
    const { state } = await lockDelivery(tx, input);
    const rows = await tx.query(CompiledQuery.raw(cancelOneSql, [organizationId, webhookId, eventId]));
    if (rows.length === 0) throw deliverySettled(state);
    await recordWebhookEntry(tx, input, 'delivery.cancel', { eventId });
  });
}

interface LockedDelivery {
  state: ShownState;
  isTooOld: boolean;
}

async function lockDelivery(tx: Transaction, delivery: DeliveryRequest): Promise<LockedDelivery> {
  const { organizationId, webhookId, eventId } = delivery;
  const [found] = await tx.query(sql<LockedDelivery>`
    select ${deliveryState} as state,
      d.created_at < ${oldestRedeliverable(new Date()).toISOString()}::timestamptz as "isTooOld"
    from delivery d
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}
    for no key update`);
  if (found === undefined) throw noSuchDelivery();
  return found;
}

function assertRedeliverable({ state, isTooOld }: LockedDelivery, onlyOpen: boolean): void {
  if (state === 'cancelled')
    throw new WebhookError('delivery_cancelled', 'This delivery was cancelled. You can’t redeliver it.');
  if (onlyOpen && state !== 'waiting') throw deliverySettled(state);
  if (isTooOld) throw eventTooOld();
}

/** Rejects a change that makes sense only while a delivery is open. */
const deliverySettled = (state: ShownState) =>
  new WebhookError('delivery_settled', `This delivery is already ${state === 'exhausted' ? 'failed' : state}.`);

/** A webhook's state after a change, and the number of its open deliveries that it affects, up to 10,000. */
export interface StateChange {
  state: WebhookState;
  deliveries: number;
}

/**
 * Pauses a webhook: nothing is sent to it until it is resumed, and nothing is lost. An attempt in
 * progress ends by itself. Pausing one that is paused or suspended changes nothing and is not
 * recorded, except that a cluster object turns a suspension into its own pause, which it can end.
 *
 * @throws WebhookError when the caller may not, or the webhook is deleted.
 */
export async function pauseWebhook(database: Database, request: WebhookRequest): Promise<StateChange> {
  return database.change(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    const isChanged = webhook.managedUid === null ? webhook.pause() : webhook.pauseAlways();
    return { state: webhook.state, deliveries: isChanged ? await recordState(tx, request, 'webhook.pause') : 0 };
  });
}

/**
 * Resumes a paused or suspended webhook: one delivery at a time at first, and twice as many after
 * each that is accepted. Deliveries keep their position in the schedule, and the time until
 * suspension begins again. Resuming an active webhook changes nothing and is not recorded. The
 * signed probe before it is the caller's step.
 *
 * @throws WebhookError when the caller may not, or the webhook is deleted.
 */
export async function resumeWebhook(database: Database, request: WebhookRequest): Promise<StateChange> {
  return database.change(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    const deliveries = webhook.resume() ? await recordState(tx, request, 'webhook.resume') : 0;
    return { state: webhook.state, deliveries };
  });
}

/**
 * Deletes a webhook: its open deliveries are cancelled and counted in an audit entry, its secrets
 * are deleted, and its number is free. The record of what was sent stays. Deleting it again changes
 * nothing and is not recorded.
 *
 * @throws WebhookError when the caller may not, or there is no such webhook.
 */
export async function deleteWebhook(database: Database, request: WebhookRequest): Promise<StateChange> {
  return database.change(async (tx) => {
    const webhook = await lockWebhook(tx, request);
    if (!webhook.delete()) return { state: webhook.state, deliveries: 0 };
    const { organizationId, webhookId } = request;
    const change = { state: webhook.state, deliveries: await recordState(tx, request, 'webhook.delete') };
    await tx.nativeDelete(WebhookSecret, { organizationId, webhookId });
    // Deliveries of an object's webhook are left to the worker: the operator's login may change none.
    const { by } = request;
    if (by !== 'orgctl' && 'objectUid' in by) return change;
    const cancel = CompiledQuery.raw(cancelWebhookDeliveriesSql, [organizationId, webhookId]);
    for (const { deliveries } of await tx.query<ChangedDeliveriesRow>(cancel))
      await recordWebhookEntry(tx, request, 'delivery.cancel', { deliveries });
    return change;
  });
}

/** Writes the webhook's new state with its audit entry. Returns the number of its open deliveries. */
async function recordState(tx: Transaction, request: WebhookRequest, action: string): Promise<number> {
  await tx.flush();
  const { organizationId, webhookId } = request;
  const [row] = await tx.query<ChangedDeliveriesRow>(
    CompiledQuery.raw(countOpenDeliveriesSql, [organizationId, webhookId]),
  );
  const { deliveries = 0 } = row ?? {};
  await recordWebhookEntry(tx, request, action, { deliveries });
  return deliveries;
}
