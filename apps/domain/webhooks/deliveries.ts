import { type RawBuilder, sql } from 'kysely';
import type { EventType } from '../contract/events.ts';
import type { Queryable } from '../db/database.ts';
import { assertMayManageWebhooks, noSuchWebhook, type WebhookRequest } from './access.ts';
import { WebhookError } from './errors.ts';
import { isHoldingSql, isOpenSql } from './open-deliveries.ts';

export const deliveryStates = ['waiting', 'delivered', 'exhausted', 'cancelled', 'held'] as const;
/** The state of a delivery, as it is shown: an open one is `waiting`, or `held` with its webhook. */
export type ShownState = (typeof deliveryStates)[number];

/** How far a waiting delivery is. */
export type Progress = 'Pending' | 'Delivering' | 'Retrying';

/** One event on its way to one webhook. Times are UTC, as every response shows them. */
export interface DeliveryRow {
  webhookId: string;
  eventId: string;
  type: EventType;
  state: ShownState;
  /** How many attempts have ended. */
  attempts: number;
  /** The webhook's own count of its events; null until it is first claimed. */
  sequence: number | null;
  createdAt: string;
  /** Null unless it is waiting. */
  nextAttemptAt: string | null;
  /** Null while it is open. */
  settledAt: string | null;
}

/** One attempt, without the response. `finishedAt` and `cause` null: in progress. */
export interface AttemptSummary {
  number: number;
  startedAt: string;
  finishedAt: string | null;
  status: number | null;
  cause: string | null;
  explanation: string | null;
  /** Milliseconds by step. */
  timings: Record<string, number | null> | null;
  peerAddress: string | null;
  keptBytes: number | null;
  /** The `Content-Encoding` of its kept bytes; null: they are the text. */
  responseEncoding: string | null;
  /** Ids of the secrets that signed it, newest first. */
  signedWith: string[];
}

/** Whether a delivery `d` is open. */
export const isOpen = sql.raw(isOpenSql);

/** Whether a webhook `w` is paused or suspended. */
export const isHolding = sql.raw(isHoldingSql);

/** Whether a delivery `d` is held. */
export const isHeld = sql`(${isOpen} and exists (
  select from webhook w where w.organization_id = d.organization_id and w.id = d.webhook_id and ${isHolding}))`;

/** The state of a delivery `d`, a `ShownState`. */
export const deliveryState = sql`case when ${isHeld} then 'held' when ${isOpen} then 'waiting' else d.state end`;

/** When the next attempt of a delivery `d` is due; null unless it waits for that time. */
export const nextAttemptAt = sql`case when d.state <> 'blocked' and not ${isHeld} then d.due_at end`;

/** The columns of a delivery `d` with its event `e` in lists. */
export const deliveryColumns = sql`
  d.webhook_id as "webhookId", d.event_id as "eventId", e.type,
  ${deliveryState} as state, d.attempts, d.sequence::float8 as sequence,
  api.utc(d.created_at) as "createdAt", api.utc(${nextAttemptAt}) as "nextAttemptAt",
    api.utc(d.settled_at) as "settledAt"`;

/** Returns a condition on the state of `d`, true for null. Literals allow partial indexes. */
export function isInState(state: ShownState | null): RawBuilder<unknown> {
  if (state === null) return sql`true`;
  if (state === 'held') return isHeld;
  return state === 'waiting' ? sql`${isOpen} and not ${isHeld}` : sql`d.state = ${sql.lit(state)}`;
}

/** Whether an attempt of a delivery `d` is in progress. */
export const isAttempting = sql`exists (
  select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
    and s.event_id = d.event_id and s.attempt_id is not null)`;

const progressConditions: Record<Progress, RawBuilder<unknown>> = {
  Pending: sql`d.attempts = 0 and not ${isAttempting}`,
  Delivering: isAttempting,
  Retrying: sql`d.attempts > 0 and not ${isAttempting}`,
};

/** Returns a condition on how far a waiting `d` is, true for null. */
export const isInProgress = (progress: Progress | null): RawBuilder<unknown> =>
  progress === null ? sql`true` : progressConditions[progress];

export const noSuchDelivery = () =>
  new WebhookError(
    'no_such_delivery',
    'This webhook has no delivery of this event, because it was not subscribed to it.',
  );

/** @throws WebhookError when the caller may not see the webhook, or there is none. */
export async function assertShown(db: Queryable, request: WebhookRequest): Promise<void> {
  await assertMayManageWebhooks(db, request);
  const rows = await db.query(sql`
    select from webhook w where w.organization_id = ${request.organizationId} and w.id = ${request.webhookId}`);
  if (rows.length === 0) throw noSuchWebhook();
}
