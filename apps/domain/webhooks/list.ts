import type { EntityManager } from '@mikro-orm/postgresql';
import type { Authority } from '../access/authority.ts';
import { runStatement, sql } from '../db/statement.ts';
import { assertMayManageWebhooks, noSuchWebhook, type WebhookRequest } from './access.ts';
import { firstEventIdAt } from './event-id.ts';
import { redeliverableDays } from './limits.ts';
import type { SignatureResult } from './signature-result.ts';

/**
 * Deliveries by state. Open ones are counted completely, settled ones for events of the last 30
 * days, which can be sent again.
 */
export type DeliveryCounts = Record<'waiting' | 'parked' | 'delivered' | 'exhausted' | 'cancelled', number>;

/** A webhook in a list. Times are UTC. */
export interface WebhookRow {
  id: string;
  organizationId: string;
  url: string;
  description: string;
  eventTypes: string[];
  state: 'active' | 'parked' | 'deleted';
  /** Null unless it is parked. */
  parkedReason: 'failing' | 'paused' | null;
  /** Since when all deliveries fail; null when the last one was accepted, or none was made yet. */
  failingSince: string | null;
  /** After a resume: how many deliveries may be under way; null for all ten. */
  ramp: number | null;
  /**
   * Whether its receiver verifies signatures, as last checked; both null when that was not checked
   * since the last change of URL or secret.
   */
  signatureResult: SignatureResult | null;
  signatureCheckedAt: string | null;
  createdAt: string;
  deliveries: DeliveryCounts;
}

/** A webhook with the periods of its secrets, never their values. `validUntil` null: the newest. */
export interface WebhookDetails extends WebhookRow {
  secrets: { id: string; createdAt: string; validUntil: string | null }[];
}

/**
 * Lists an organization's webhooks that are not deleted, oldest first.
 *
 * @throws WebhookRefused when the caller may not.
 */
export async function listWebhooks(
  em: EntityManager,
  { organizationId, by }: { organizationId: string; by: Authority },
): Promise<WebhookRow[]> {
  const fork = em.fork();
  await assertMayManageWebhooks(fork, organizationId, by);
  return selectWebhooks(fork, organizationId, null);
}

/**
 * Returns one webhook, also a deleted one.
 *
 * @throws WebhookRefused when the caller may not, or the organization has no such webhook.
 */
export async function getWebhook(em: EntityManager, request: WebhookRequest): Promise<WebhookDetails> {
  const { organizationId, webhookId, by } = request;
  const fork = em.fork();
  await assertMayManageWebhooks(fork, organizationId, by);
  const [webhook] = await selectWebhooks(fork, organizationId, webhookId);
  if (webhook === undefined) throw noSuchWebhook();
  return { ...webhook, secrets: await listSecrets(fork, { organizationId, webhookId }) };
}

/**
 * Lists the periods of a webhook's secrets, newest first. Check first that the webhook belongs to
 * the organization.
 */
export async function listSecrets(
  em: EntityManager,
  { organizationId, webhookId }: Omit<WebhookRequest, 'by'>,
): Promise<WebhookDetails['secrets']> {
  return runStatement<WebhookDetails['secrets'][number]>(
    em,
    sql`
    select s.id, api.utc(s.created_at) as "createdAt", api.utc(s.valid_until) as "validUntil" from webhook_secret s
    where s.organization_id = ${organizationId} and s.webhook_id = ${webhookId}
    order by s.valid_until desc nulls first, s.created_at desc, s.id`,
  );
}

/** The columns of a webhook `w`. */
export const webhookColumns = sql`
  w.id, w.organization_id as "organizationId", w.url, w.description, w.event_types as "eventTypes", w.state,
  w.parked_reason as "parkedReason", api.utc(w.failing_since) as "failingSince", w.ramp,
  w.signature_result as "signatureResult", api.utc(w.signature_checked_at) as "signatureCheckedAt",
    api.utc(w.created_at) as "createdAt"`;

/** `webhookId` null: all that are not deleted. */
async function selectWebhooks(
  em: EntityManager,
  organizationId: string,
  webhookId: string | null,
): Promise<WebhookRow[]> {
  const recent = firstEventIdAt(new Date(Date.now() - redeliverableDays * 86_400_000));
  return runStatement<WebhookRow>(
    em,
    sql`
    select ${webhookColumns},
      json_build_object('waiting', case when w.state = 'parked' then 0 else o.count end,
        'parked', case when w.state = 'parked' then o.count else 0 end, 'delivered', s.delivered, 'exhausted',
          s.exhausted,
        'cancelled', s.cancelled) as deliveries
    from webhook w
    cross join lateral (
      select count(*) as count
      from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting'
    ) o
    cross join lateral (
      select count(*) filter (where d.state = 'delivered') as delivered,
        count(*) filter (where d.state = 'exhausted') as exhausted,
        count(*) filter (where d.state = 'cancelled') as cancelled
      from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.event_id >= ${recent}::uuid
    ) s
    where w.organization_id = ${organizationId}
      and case when ${webhookId}::uuid is null then w.state <> 'deleted' else w.id = ${webhookId}::uuid end
    order by w.created_at, w.id`,
  );
}
