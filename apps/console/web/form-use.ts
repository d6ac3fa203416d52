import type { Pool } from 'pg';

/**
 * Notes that a drawing of a form was sent, in a session. `$1` session, `$2` form. One row when it
 * is the first time.
 */
const recordFormUseSql = /* sql */ `
  insert into form_use (session_id, form_id) values ($1, $2) on conflict do nothing returning form_id`;

/**
 * Whether this is the first time that this drawing of a form is sent: true for one of two at once,
 * on whatever pods.
 */
export async function recordFormUse(pool: Pool, sessionId: string, formId: string): Promise<boolean> {
  const { rows } = await pool.query({ name: 'recordFormUse', text: recordFormUseSql, values: [sessionId, formId] });
  return rows.length === 1;
}
