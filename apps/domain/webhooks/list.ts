import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import { assertMayManageWebhooks, noSuchWebhook, type WebhookRequest, type WebhooksRequest } from './access.ts';
import { hasRetryAfterSql } from './open-deliveries.ts';
import { noCounts, type WebhookCounts, type WebhookHead } from './summary.ts';

/** The period of a secret, never its value. `validUntil` null: the newest. */
export interface SecretPeriod {
  id: string;
  createdAt: string;
  validUntil: string | null;
}

/**
 * Lists an organization's webhooks that are not deleted (20 at most), oldest first, with what
 * `counts` counts of each.
 *
 * @throws WebhookError when the caller may not.
 */
export async function listWebhooks<Counts = object>(
  db: Queryable,
  request: WebhooksRequest,
  counts?: WebhookCounts<Counts>,
): Promise<(WebhookHead & Counts)[]> {
  await assertMayManageWebhooks(db, request);
  return selectWebhooks<Counts>(db, request.organizationId, sql`w.state <> 'deleted'`, counts);
}

/**
 * Returns one webhook, also a deleted one, with what `counts` counts of it.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function getWebhook<Counts = object>(
  db: Queryable,
  request: WebhookRequest,
  counts?: WebhookCounts<Counts>,
): Promise<WebhookHead & Counts> {
  await assertMayManageWebhooks(db, request);
  const { organizationId, webhookId } = request;
  const [webhook] = await selectWebhooks<Counts>(db, organizationId, sql`w.id = ${webhookId}`, counts);
  if (webhook === undefined) throw noSuchWebhook();
  return webhook;
}

/**
 * Returns one webhook as `getWebhook` does, with the periods of its secrets, newest first.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function getWebhookWithSecrets<Counts>(
  db: Queryable,
  request: WebhookRequest,
  counts: WebhookCounts<Counts>,
): Promise<WebhookHead & Counts & { secrets: SecretPeriod[] }> {
  const webhook = await getWebhook(db, request, counts);
  const { organizationId, webhookId } = request;
  const secrets = await db.query(sql<SecretPeriod>`
    select s.id, api.utc(s.created_at) as "createdAt", api.utc(s.valid_until) as "validUntil" from webhook_secret s
    where s.organization_id = ${organizationId} and s.webhook_id = ${webhookId}
    order by s.valid_until desc nulls first, s.created_at desc, s.id`);
  return { ...webhook, secrets };
}

/** `which` is a condition on a webhook `w`. */
async function selectWebhooks<Counts>(
  db: Queryable,
  organizationId: string,
  which: RawBuilder<unknown>,
  { columns, source }: Pick<WebhookCounts<Counts>, 'columns' | 'source'> = noCounts,
): Promise<(WebhookHead & Counts)[]> {
  return db.query(sql<WebhookHead & Counts>`
    select w.id, w.organization_id as "organizationId", w.url, w.description, w.event_types as "eventTypes", w.ordered,
      w.posts_per_second as "postsPerSecond", w.header_names as "headerNames", w.state,
      w.suspended_reason as "suspendedReason", api.utc(r.failing_since) as "failingSince", r.concurrency,
      api.utc(case when ${sql.raw(hasRetryAfterSql)} then r.retry_after_until end) as "retryAfterUntil",
      w.signature_result as "signatureResult", api.utc(w.signature_checked_at) as "signatureCheckedAt",
      api.utc(w.created_at) as "createdAt", w.managed_by as "managedBy" ${columns}
    from webhook w join receiver r on r.organization_id = w.organization_id and r.webhook_id = w.id ${source}
    where w.organization_id = ${organizationId} and ${which}
    order by w.created_at, w.id`);
}
