import type { Pool } from 'pg';

/** True while deliveries are admitted. As a scalar subquery it is read once per statement. */
export const isAdmittingSql = /* sql */ `(select a.state = 'running' from delivery_admission a)`;

/** Whether deliveries of the region are admitted: `running`, `paused` or `draining`. */
export type AdmissionState = 'running' | 'paused' | 'draining';

/** The state of the region's admission. */
export interface DeliveryAdmission {
  state: AdmissionState;
  /** ISO 8601. */
  changedAt: string;
  /** Attempts in progress. */
  underWay: number;
  /** Whether no attempt is in progress, and none can begin before the state changes. */
  isDrained: boolean;
}

/**
 * An admission that read the state before the change ends within its connection's limit for a
 * statement (5 s), so nothing counts as drained in the first 10 s.
 */
const readAdmissionSql = /* sql */ `
  select a.state, to_char(a.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "changedAt",
    u.count::integer as "underWay",
    a.state <> 'running' and u.count = 0 and a.changed_at < clock_timestamp() - interval '10 seconds' as "isDrained"
  from delivery_admission a cross join (select count(*) as count from slot s where s.attempt_id is not null) u`;

export async function readDeliveryAdmission(pool: Pool): Promise<DeliveryAdmission> {
  const { rows } = await pool.query<DeliveryAdmission>(readAdmissionSql);
  if (rows[0] === undefined) throw new Error('delivery_admission has no row');
  return rows[0];
}

/**
 * Sets whether deliveries of the region are admitted, and returns whether that changed. While the
 * state is not `running`, no attempt begins; attempts in progress end and are recorded. Every open
 * delivery waits, and continues after `running`.
 */
export async function setDeliveryAdmission(pool: Pool, state: AdmissionState): Promise<boolean> {
  const { rowCount } = await pool.query(
    'update delivery_admission a set state = $1, changed_at = clock_timestamp() where a.state <> $1',
    [state],
  );
  return rowCount === 1;
}
