import type { Pool } from 'pg';
import {
  type AdmissionState,
  type DeliveryAdmission,
  readAdmissionSql,
  setAdmissionStateSql,
} from '../db/statements/delivery-admission.ts';

/** Reads whether deliveries of the region are admitted, and what is under way. */
export async function readDeliveryAdmission(pool: Pool): Promise<DeliveryAdmission> {
  const { rows } = await pool.query<DeliveryAdmission>(readAdmissionSql);
  if (rows[0] === undefined) throw new Error('delivery_admission has no row');
  return rows[0];
}

/**
 * Sets whether deliveries of the region are admitted. While the state is not `running`, no attempt
 * begins; attempts under way end and are recorded. Every open delivery waits, and goes on after
 * `running`.
 *
 * @returns whether the state changed.
 */
export async function setDeliveryAdmission(pool: Pool, state: AdmissionState): Promise<boolean> {
  const { rows } = await pool.query(setAdmissionStateSql, [state]);
  return rows.length > 0;
}
