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
 * True while deliveries are admitted. A scalar subquery: PostgreSQL reads the row once per
 * statement, and nothing waits for it.
 */
export const isAdmittingSql = /* sql */ `(select a.state = 'running' from delivery_admission a)`;

/** Sets the state to `$1`; returns one row `{changed: true}`, or none when it is the same. */
export const setAdmissionStateSql = /* sql */ `
  update delivery_admission a set state = $1, changed_at = clock_timestamp() where a.state <> $1
  returning true as changed`;

/**
 * Reads a `DeliveryAdmission`. An admission that read the state before the change ends within its
 * connection's limit for a statement (5 s), so nothing counts as drained in the first 10 s.
 */
export const readAdmissionSql = /* sql */ `
  select a.state, to_char(a.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "changedAt",
    u.count::integer as "underWay",
    a.state <> 'running' and u.count = 0 and a.changed_at < clock_timestamp() - interval '10 seconds' as "isDrained"
  from delivery_admission a cross join (select count(*) as count from concurrency_slot) u`;
