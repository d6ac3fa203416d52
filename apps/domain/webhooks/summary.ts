import type { EntityManager } from '@mikro-orm/postgresql';
import type { Authority } from '../access/authority.ts';
import { runStatement, type SqlPart, sql } from '../db/statement.ts';
import { assertMayManageWebhooks, noSuchWebhook, type WebhookRequest } from './access.ts';
import { firstEventIdAt } from './event-id.ts';
import { type HealthCounts, healthCounts, healthLooksAt } from './health.ts';
import { listSecrets, type WebhookDetails, type WebhookRow, webhookColumns } from './list.ts';

/** A webhook without counts. */
export type WebhookHead = Omit<WebhookRow, 'deliveries'>;

/**
 * A webhook for a page: each count is bounded, so it takes as long with a million deliveries as
 * with ten.
 */
export interface WebhookSummary extends WebhookHead {
  /** Of the events of the last 24 hours, the newest 500 at most. */
  day: HealthCounts;
  /** Open deliveries, counted up to `openCountedTo`. */
  waiting: number;
  parked: number;
}

/** How far open deliveries are counted. */
export const openCountedTo = 10_000;

/**
 * Lists an organization's webhooks that are not deleted (20 at most), oldest first.
 *
 * @throws WebhookRefused when the caller may not.
 */
export async function listWebhookSummaries(
  em: EntityManager,
  { organizationId, by }: { organizationId: string; by: Authority },
  now: Date,
): Promise<WebhookSummary[]> {
  const fork = em.fork();
  await assertMayManageWebhooks(fork, organizationId, by);
  return selectSummaries(fork, organizationId, sql`w.state <> 'deleted'`, now);
}

/**
 * Returns one webhook with the periods of its secrets, also a deleted one.
 *
 * @throws WebhookRefused when the caller may not, or the organization has no such webhook.
 */
export async function getWebhookSummary(
  em: EntityManager,
  { organizationId, webhookId, by }: WebhookRequest,
  now: Date,
): Promise<WebhookSummary & Pick<WebhookDetails, 'secrets'>> {
  const fork = em.fork();
  await assertMayManageWebhooks(fork, organizationId, by);
  const [webhook] = await selectSummaries(fork, organizationId, sql`w.id = ${webhookId}`, now);
  if (webhook === undefined) throw noSuchWebhook();
  return { ...webhook, secrets: await listSecrets(fork, { organizationId, webhookId }) };
}

/**
 * Returns one webhook without counts, also a deleted one.
 *
 * @throws WebhookRefused when the caller may not, or the organization has no such webhook.
 */
export async function getWebhookHead(
  em: EntityManager,
  { organizationId, webhookId, by }: WebhookRequest,
): Promise<WebhookHead> {
  const fork = em.fork();
  await assertMayManageWebhooks(fork, organizationId, by);
  const [webhook] = await runStatement<WebhookHead>(
    fork,
    sql`
    select ${webhookColumns} from webhook w where w.organization_id = ${organizationId} and w.id = ${webhookId}`,
  );
  if (webhook === undefined) throw noSuchWebhook();
  return webhook;
}

async function selectSummaries(
  em: EntityManager,
  organizationId: string,
  which: SqlPart,
  now: Date,
): Promise<WebhookSummary[]> {
  const yesterday = firstEventIdAt(new Date(now.getTime() - 24 * 3_600_000));
  return runStatement<WebhookSummary>(
    em,
    sql`
    select ${webhookColumns}, row_to_json(h) as day, ${openOf('waiting')}, ${openOf('parked')}
    from webhook w
    cross join lateral (
      select ${healthCounts} from (
        select d.organization_id, d.webhook_id, d.event_id, d.state, d.attempts, d.round from delivery d
        where d.organization_id = w.organization_id and d.webhook_id = w.id and d.event_id >= ${yesterday}::uuid
        order by d.event_id desc
        limit ${healthLooksAt}
      ) d
    ) h
    where w.organization_id = ${organizationId} and ${which}
    order by w.created_at, w.id`,
  );
}

const openOf = (state: 'waiting' | 'parked') => sql`(
  select count(*)::integer from (
    select from delivery d
    where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting'
      and ${state === 'parked' ? sql`w.state = 'parked'` : sql`w.state <> 'parked'`}
    limit ${openCountedTo}
  ) o) as ${sql.ref(state)}`;
