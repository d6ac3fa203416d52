/**
 * Two statements of one transaction, because the second one must see the secrets after the first
 * has locked the webhook's row: a rotation that held it makes the result outdated. `$1`
 * organization, `$2` webhook.
 */
export const lockWebhookSql = /* sql */ `
  select from webhook w where w.organization_id = $1 and w.id = $2 for no key update`;

/**
 * Writes a result, with its activity row, on a webhook that has not changed since the check: `$3`
 * its URL, `$4` the id of its newest secret, `$5` the result. One row, `{recorded}`: false when it
 * was changed or deleted meanwhile.
 */
export const recordSignatureResultSql = /* sql */ `
  with webhook_now as (
    update webhook w set signature_result = $5, signature_checked_at = clock_timestamp()
    where w.organization_id = $1 and w.id = $2 and w.url = $3 and w.state <> 'deleted' and exists (
      select from webhook_secret s
      where s.organization_id = w.organization_id and s.webhook_id = w.id and s.id = $4 and s.valid_until is null)
    returning w.organization_id, w.id, w.signature_result
  ), line as (
    insert into activity (organization_id, action, detail)
    select w.organization_id, 'webhook.verified', jsonb_build_object('webhookId', w.id, 'result',
      w.signature_result) from webhook_now w
  )
  select exists (select from webhook_now) as recorded`;
