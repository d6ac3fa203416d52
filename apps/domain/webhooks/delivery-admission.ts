import type { Pool } from 'pg';
import {
  type AdmissionState,
  type DeliveryAdmission,
  readAdmissionSql,
  setAdmissionStateSql,
} from '../db/statements/delivery-admission.ts';

/** Reads whether deliveries of the region are admitted, and how many attempts are in progress. */
export async function readDeliveryAdmission(pool: Pool): Promise<DeliveryAdmission> {
  const { rows } = await pool.query<DeliveryAdmission>(readAdmissionSql);
  if (rows[0] === undefined) throw new Error('delivery_admission has no row');
  return rows[0];
}

/**
 * Sets whether deliveries of the region are admitted. While the state is not `running`, no attempt
 * begins; attempts in progress end and are recorded. Every open delivery waits, and continues after
 * `running`.
 *
 * @returns whether the state changed.
 */
export async function setDeliveryAdmission(pool: Pool, state: AdmissionState): Promise<boolean> {
  const { rows } = await pool.query(setAdmissionStateSql, [state]);
  return rows.length > 0;
}
