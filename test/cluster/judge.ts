import type { Pool } from 'pg';
import type { Ledger } from '#domain/webhooks/ledger.ts';
import { readLedgerSql } from '#domain/webhooks/ledger-statements.ts';

/** One arrival in the log of the receiver in the cluster. */
export interface Arrival {
  endpoint: string;
  eventId: string;
  attempt: string;
  verified: boolean;
  response: number | string;
}

/** A region's events, counted on both sides. */
export interface EventFigures {
  events: number;
  delivered: number;
  /** Open deliveries that reached no receiver. */
  lost: number;
  arrivals: number;
  /** Arrivals of an event that had been accepted before. */
  duplicates: number;
  /** Arrivals without a recorded attempt. */
  unexplained: number;
  attempts: number;
  lostAttempts: number;
  difference: number;
  unverified: number;
}

/**
 * Compares the attempts in a region's database with the arrivals at its receiver. Endpoints are
 * named by webhook id.
 */
export async function judgeEvents(pool: Pool, arrivals: readonly Arrival[]): Promise<EventFigures> {
  const { rows: deliveries } = await pool.query<{ webhookId: string; eventId: string; state: string }>(
    'select webhook_id as "webhookId", event_id as "eventId", state from delivery order by 1, 2',
  );
  const { rows: attempts } = await pool.query<{
    webhookId: string;
    eventId: string;
    number: number;
    cause: string | null;
  }>('select webhook_id as "webhookId", event_id as "eventId", number, cause from delivery_attempt order by 1, 2, 3');
  const recorded = new Set(attempts.map(({ webhookId, eventId, number }) => `${webhookId}/${eventId}/${number}`));
  const accepted = new Set<string>();
  const seen = new Set<string>();
  let duplicates = 0;
  let unexplained = 0;
  for (const { endpoint, eventId, attempt, response } of arrivals) {
    const name = `${endpoint}/${eventId}`;
    if (accepted.has(name)) duplicates += 1;
    if (response === 204) accepted.add(name);
    // An attempt is posted once: a repeated number is as wrong as a number that was never recorded.
    if (seen.has(`${name}/${attempt}`) || !recorded.has(`${name}/${attempt}`)) unexplained += 1;
    seen.add(`${name}/${attempt}`);
  }
  const { rows } = await pool.query<{ ledger: Ledger }>(readLedgerSql);
  const difference = rows[0]?.ledger.difference ?? Number.NaN;
  return {
    events: new Set(deliveries.map(({ eventId }) => eventId)).size,
    delivered: deliveries.filter(({ state }) => state === 'delivered').length,
    lost: deliveries.filter(({ webhookId, eventId }) => !accepted.has(`${webhookId}/${eventId}`)).length,
    arrivals: arrivals.length,
    duplicates,
    unexplained,
    attempts: attempts.length,
    lostAttempts: attempts.filter(({ cause }) => cause === 'lost').length,
    difference,
    unverified: arrivals.filter(({ verified }) => !verified).length,
  };
}
