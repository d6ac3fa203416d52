import { sql } from 'kysely';
import type { Database } from '#domain/db/database.ts';
import type { SignatureResult } from '#domain/webhooks/signature-result.ts';

interface CheckedWebhook {
  organizationId: string;
  webhookId: string;
  url: string;
  newestSecretId: string;
}

/**
 * Writes the result and its time on the webhook, with an audit entry. The request for the check
 * has a row already. Returns false, with nothing written, when the URL or the secret was changed
 * meanwhile, or the webhook deleted.
 */
export function recordSignatureResult(
  database: Database,
  checked: CheckedWebhook,
  result: SignatureResult,
): Promise<boolean> {
  const { organizationId, webhookId, url, newestSecretId } = checked;
  return database.change(async (tx) => {
    await tx.query(sql`
      select from webhook w where w.organization_id = ${organizationId} and w.id = ${webhookId} for no key update`);
    // Its snapshot is from after the lock, so it sees the secrets of that moment.
    const recorded = await tx.query(sql`
      with webhook_now as (
        update webhook w set signature_result = ${result}, signature_checked_at = clock_timestamp()
        where w.organization_id = ${organizationId} and w.id = ${webhookId} and w.url = ${url} and w.state <> 'deleted'
          and exists (
            select from webhook_secret s where s.organization_id = w.organization_id and s.webhook_id = w.id
              and s.id = ${newestSecretId} and s.valid_until is null)
        returning w.organization_id, w.id, w.signature_result
      )
      select record_worker_entry(w.organization_id, 'webhook.verified',
        jsonb_build_object('webhookId', w.id, 'result', w.signature_result)) from webhook_now w`);
    return recorded.length === 1;
  });
}
