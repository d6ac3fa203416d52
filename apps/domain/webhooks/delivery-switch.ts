import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';

/** True while the region sends deliveries. As a scalar subquery it is read once per statement. */
export const isSendingSql = /* sql */ `(select a.state = 'running' from delivery_switch a)`;

/** The region's switch: deliveries are sent while it is `running`. */
export type SwitchState = 'running' | 'paused' | 'draining';

export interface DeliverySwitch {
  state: SwitchState;
  /** ISO 8601. */
  changedAt: string;
  /** Attempts in progress. */
  underWay: number;
  /** Whether no attempt is in progress, and none can begin before the state changes. */
  isDrained: boolean;
}

/**
 * Reads the state. An admission that read it before a change ends within its connection's limit for
 * a statement (5 s), so nothing counts as drained in the first 10 s.
 */
export async function readDeliverySwitch(db: Queryable): Promise<DeliverySwitch> {
  const [row] = await db.query(sql<DeliverySwitch>`
    select a.state, to_char(a.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "changedAt",
      u.count::integer as "underWay",
      a.state <> 'running' and u.count = 0 and a.changed_at < clock_timestamp() - interval '10 seconds' as "isDrained"
    from delivery_switch a
    cross join (select count(*) as count from slot s where s.attempt_id is not null) u`);
  if (row === undefined) throw new Error('delivery_switch has no row');
  return row;
}

/**
 * Sets whether the region sends deliveries, and returns whether that changed. While the
 * state is not `running`, no attempt begins; attempts in progress end and are recorded. Every open
 * delivery waits, and continues after `running`.
 */
export async function setDeliverySwitch(db: Queryable, state: SwitchState): Promise<boolean> {
  const changed = await db.query(sql`
    update delivery_switch a set state = ${state}, changed_at = clock_timestamp() where a.state <> ${state}
    returning 1`);
  return changed.length === 1;
}
