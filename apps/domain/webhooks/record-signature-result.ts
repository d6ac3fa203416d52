import type { Pool } from 'pg';
import { lockWebhookSql, recordSignatureResultSql } from '../db/statements/signature-result.ts';
import type { SignatureResult } from './signature-result.ts';

/** A webhook as it was when its receiver was checked. */
interface CheckedWebhook {
  organizationId: string;
  webhookId: string;
  url: string;
  newestSecretId: string;
}

/**
 * Writes the result and its time on the webhook, with an activity row. The request for the check
 * has a row already.
 *
 * @returns false, with nothing written, when the URL or the secret was changed meanwhile, or the
 * webhook deleted.
 */
export async function recordSignatureResult(
  pool: Pool,
  checked: CheckedWebhook,
  result: SignatureResult,
): Promise<boolean> {
  const { organizationId, webhookId, url, newestSecretId } = checked;
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(lockWebhookSql, [organizationId, webhookId]);
    const values = [organizationId, webhookId, url, newestSecretId, result];
    const { rows } = await client.query<{ recorded: boolean }>(recordSignatureResultSql, values);
    await client.query('commit');
    client.release();
    return rows[0]?.recorded === true;
  } catch (error) {
    client.release(true); // closes the connection in any state
    throw error;
  }
}
