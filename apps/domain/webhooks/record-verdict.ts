import type { Pool } from 'pg';
import { lockWebhookSql, recordVerdictSql } from '../db/statements/signature-verdict.ts';
import type { SignatureVerdict } from './signature-verdict.ts';

/** A webhook as it was when its receiver was checked. */
export interface CheckedWebhook {
  organizationId: string;
  webhookId: string;
  url: string;
  newestSecretId: string;
}

/**
 * Writes the verdict and its time on the webhook, and a line in the activity log. Whoever asked for
 * the check has a line already.
 *
 * @returns false, with nothing written, when the URL or the secret was changed meanwhile, or the
 * webhook deleted: the verdict is on what is gone.
 */
export async function recordVerdict(pool: Pool, checked: CheckedWebhook, verdict: SignatureVerdict): Promise<boolean> {
  const { organizationId, webhookId, url, newestSecretId } = checked;
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(lockWebhookSql, [organizationId, webhookId]);
    const values = [organizationId, webhookId, url, newestSecretId, verdict];
    const { rows } = await client.query<{ recorded: boolean }>(recordVerdictSql, values);
    await client.query('commit');
    client.release();
    return rows[0]?.recorded === true;
  } catch (error) {
    client.release(true); // whatever state it is in goes with it
    throw error;
  }
}
