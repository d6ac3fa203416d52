import { sql } from 'kysely';

/**
 * Conditions on a row `g` of `client_grant` by the clock: the worker writes a begin or an end up to a
 * second later. Access that was withdrawn satisfies none of them.
 */
export const isActiveGrant = sql`(g.status = 'active' or g.status = 'scheduled' and g.since <= now())
  and (g.ends_at is null or g.ends_at > now())`;

/** It has not begun. */
export const isScheduledGrant = sql`g.status = 'scheduled' and g.since > now()`;

export const isEndedGrant = sql`(g.status = 'ended' or g.status <> 'withdrawn' and g.ends_at <= now())`;
