import type { Pool } from 'pg';
import { inTransaction } from '#domain/db/transaction.ts';
import type { SignatureResult } from '#domain/webhooks/signature-result.ts';

/** A webhook as it was when its receiver was checked. */
interface CheckedWebhook {
  organizationId: string;
  webhookId: string;
  url: string;
  newestSecretId: string;
}

/** The second statement of the transaction sees the secrets after this one has locked the webhook. */
const lockWebhookSql = /* sql */ `
  select from webhook w where w.organization_id = $1 and w.id = $2 for no key update`;

const recordSignatureResultSql = /* sql */ `
  with webhook_now as (
    update webhook w set signature_result = $5, signature_checked_at = clock_timestamp()
    where w.organization_id = $1 and w.id = $2 and w.url = $3 and w.state <> 'deleted' and exists (
      select from webhook_secret s
      where s.organization_id = w.organization_id and s.webhook_id = w.id and s.id = $4 and s.valid_until is null)
    returning w.organization_id, w.id, w.signature_result
  )
  select record_worker_entry(w.organization_id, 'webhook.verified', jsonb_build_object('webhookId', w.id, 'result',
    w.signature_result)) from webhook_now w`;

/**
 * Writes the result and its time on the webhook, with an audit entry. The request for the check
 * has a row already. Returns false, with nothing written, when the URL or the secret was changed
 * meanwhile, or the webhook deleted.
 */
export function recordSignatureResult(pool: Pool, checked: CheckedWebhook, result: SignatureResult): Promise<boolean> {
  const { organizationId, webhookId, url, newestSecretId } = checked;
  return inTransaction(pool, async (client) => {
    await client.query(lockWebhookSql, [organizationId, webhookId]);
    const values = [organizationId, webhookId, url, newestSecretId, result];
    const { rowCount } = await client.query(recordSignatureResultSql, values);
    return rowCount === 1;
  });
}
