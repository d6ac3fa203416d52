import type { EntityManager } from '@mikro-orm/postgresql';
import type { EventType } from '../contract/events.ts';
import { literal, runStatement, type SqlPart, sql } from '../db/statement.ts';
import { assertMayManageWebhooks, noSuchWebhook, type WebhookRequest } from './access.ts';
import { WebhookRefused } from './refused.ts';

export const deliveryStates = ['waiting', 'delivered', 'exhausted', 'cancelled', 'parked'] as const;
/**
 * What a delivery is at. `parked`: it waits for a webhook that is paused or suspended; the table
 * says `waiting`.
 */
export type DeliveryState = (typeof deliveryStates)[number];

/** One event on its way to one webhook. Times are UTC, as every answer shows them. */
export interface DeliveryRow {
  eventId: string;
  type: EventType;
  state: DeliveryState;
  /** Which round is current: redelivery, resume and repair each begin a new one. */
  round: number;
  /** How many attempts were made, in all rounds. */
  attempts: number;
  /** The webhook's own count of its events; null until it is first claimed. */
  sequence: number | null;
  createdAt: string;
  /** Null unless it is waiting. */
  nextAttemptAt: string | null;
  /** Null while it is open. */
  settledAt: string | null;
}

/** One attempt; `finishedAt` and `cause` null: under way. `status` is the HTTP status or null. */
export interface AttemptRow {
  number: number;
  round: number;
  startedAt: string;
  finishedAt: string | null;
  status: number | null;
  cause: string | null;
  explanation: string | null;
  /** Milliseconds by step. */
  timings: Record<string, number | null> | null;
  peerAddress: string | null;
  keptBytes: number | null;
  /** Ids of the secrets that signed it, newest first. */
  signedWith: string[];
  /** The beginning of the receiver's answer as UTF-8 text: its words, not ours. */
  answer: string | null;
}

export type DeliveryWithAttempts = Omit<DeliveryRow, 'attempts'> & { attempts: AttemptRow[] };

export interface ListDeliveries extends WebhookRequest {
  /** Null: every state. */
  state: DeliveryState | null;
  atMost: number;
  /** Continues below this event; null begins with the newest. */
  before: string | null;
}

/** Whether a delivery `d` is parked. */
const isParked = sql`(d.state = 'waiting' and exists (
  select from webhook w where w.organization_id = d.organization_id and w.id = d.webhook_id and w.state = 'parked'))`;

/** The state of a delivery `d`, a `DeliveryState`. */
export const deliveryState = sql`case when ${isParked} then 'parked' else d.state end`;

/** When the next attempt of a delivery `d` is due; null unless it is waiting. */
export const nextAttemptAt = sql`case when not ${isParked} then d.next_attempt_at end`;

/** What is listed of a delivery `d` with its event `e`. */
export const deliveryColumns = sql`
  d.event_id as "eventId", e.type, ${deliveryState} as state, d.round, d.attempts, d.sequence::float8 as sequence,
  api.utc(d.created_at) as "createdAt", api.utc(${nextAttemptAt}) as "nextAttemptAt",
    api.utc(d.settled_at) as "settledAt"`;

/**
 * The condition that a delivery `d` is in a state, true for null. The table's own state is a
 * literal, so that the partial indexes serve the states that they hold.
 */
export function isInState(state: DeliveryState | null): SqlPart {
  if (state === null) return sql`true`;
  if (state === 'parked') return isParked;
  return state === 'waiting' ? sql`d.state = 'waiting' and not ${isParked}` : sql`d.state = ${literal(state)}`;
}

/**
 * A webhook's deliveries, newest event first. @throws WebhookRefused when the caller may not, or
 * the organization has no such webhook.
 */
export async function listDeliveries(em: EntityManager, input: ListDeliveries): Promise<DeliveryRow[]> {
  const { organizationId, webhookId, state, atMost, before } = input;
  const fork = em.fork();
  await assertShown(fork, input);
  return runStatement<DeliveryRow>(
    fork,
    sql`
    select ${deliveryColumns}
    from delivery d join event e on e.organization_id = d.organization_id and e.id = d.event_id
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and ${isInState(state)}
      and (${before}::uuid is null or d.event_id < ${before}::uuid)
    order by d.event_id desc
    limit ${atMost}`,
  );
}

/**
 * One delivery with every attempt, oldest first. @throws WebhookRefused when the caller may not, or
 * there is none.
 */
export async function getDelivery(
  em: EntityManager,
  input: WebhookRequest & { eventId: string },
): Promise<DeliveryWithAttempts> {
  const { organizationId, webhookId, eventId } = input;
  const fork = em.fork();
  await assertShown(fork, input);
  const [delivery] = await runStatement<DeliveryRow>(
    fork,
    sql`
    select ${deliveryColumns}
    from delivery d join event e on e.organization_id = d.organization_id and e.id = d.event_id
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}`,
  );
  if (delivery === undefined) throw noSuchDelivery();
  const attempts = await runStatement<Omit<AttemptRow, 'answer'> & { answer: Buffer | null }>(
    fork,
    sql`
    select a.number, a.round, api.utc(a.started_at) as "startedAt", api.utc(a.finished_at) as "finishedAt", a.status,
      a.cause, a.explanation,
      a.timings, host(a.peer_address) as "peerAddress", a.kept_bytes as "keptBytes", a.signed_with as "signedWith",
        a.answer
    from delivery_attempt a
    where a.organization_id = ${organizationId} and a.webhook_id = ${webhookId} and a.event_id = ${eventId}
    order by a.number`,
  );
  return {
    ...delivery,
    attempts: attempts.map((attempt) => ({ ...attempt, answer: attempt.answer?.toString('utf8') ?? null })),
  };
}

export const noSuchDelivery = () =>
  new WebhookRefused('no_such_delivery', 'The webhook has no delivery of this event: it was not subscribed to it.');

/**
 * @throws WebhookRefused when the caller may not look at the webhook, or the organization has no
 * such webhook.
 */
export async function assertShown(em: EntityManager, { organizationId, webhookId, by }: WebhookRequest): Promise<void> {
  await assertMayManageWebhooks(em, organizationId, by);
  const rows = await runStatement(
    em,
    sql`
    select from webhook w where w.organization_id = ${organizationId} and w.id = ${webhookId}`,
  );
  if (rows.length === 0) throw noSuchWebhook();
}
