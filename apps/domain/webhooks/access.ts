import type { EntityManager } from '@mikro-orm/postgresql';
import { type Authority, findPermissions } from '../access/authority.ts';
import { runStatement, sql } from '../db/statement.ts';
import { WebhookRefused } from './refused.ts';

/** Whose webhook, and who asks. */
export interface WebhookRequest {
  organizationId: string;
  webhookId: string;
  by: Authority;
}

/** What a change needs to know of a webhook before it. */
export interface LockedWebhook {
  url: string;
  eventTypes: string[];
  state: 'active' | 'parked' | 'deleted';
}

/**
 * @throws WebhookRefused unless an operator asks, or an active member who holds
 * `org.webhooks.manage`.
 */
export async function assertMayManageWebhooks(em: EntityManager, organizationId: string, by: Authority): Promise<void> {
  if (by === 'operator') return;
  const held = await findPermissions(em, organizationId, by.personId);
  if (held?.has('org.webhooks.manage')) return;
  throw new WebhookRefused(
    'may_not_manage_webhooks',
    'Only an active member with a role that may manage webhooks (org.webhooks.manage) can do this.',
  );
}

/**
 * The webhook, for a change of it: its row is locked until the transaction ends, so changes come
 * one after the other. Claims of the relay pass it over meanwhile.
 *
 * Never wait for a delivery's row while holding it: the record of an attempt holds its delivery and
 * then takes the webhook, and the two would block each other.
 *
 * @throws WebhookRefused when the caller may not, or there is no such webhook.
 */
export async function lockWebhook(tx: EntityManager, request: WebhookRequest): Promise<LockedWebhook> {
  const { organizationId, webhookId, by } = request;
  await assertMayManageWebhooks(tx, organizationId, by);
  const rows = await runStatement<LockedWebhook>(
    tx,
    sql`
    select w.url, w.event_types as "eventTypes", w.state from webhook w
    where w.organization_id = ${organizationId} and w.id = ${webhookId}
    for no key update`,
  );
  const webhook = rows[0];
  if (webhook === undefined) throw noSuchWebhook();
  return webhook;
}

/**
 * The same, for changes that make no sense for a deleted webhook. @throws WebhookRefused also when
 * it is deleted.
 */
export async function lockLivingWebhook(tx: EntityManager, request: WebhookRequest): Promise<LockedWebhook> {
  const webhook = await lockWebhook(tx, request);
  if (webhook.state === 'deleted') throw webhookDeleted();
  return webhook;
}

/**
 * Which organization has a webhook, for operators, who name webhooks by id alone; null when there
 * is none.
 */
export async function findWebhookOrganization(em: EntityManager, webhookId: string): Promise<string | null> {
  const rows = await runStatement<{ organizationId: string }>(
    em,
    sql`
    select w.organization_id as "organizationId" from webhook w where w.id = ${webhookId}`,
  );
  return rows[0]?.organizationId ?? null;
}

export const noSuchWebhook = () => new WebhookRefused('no_such_webhook', 'The organization has no such webhook.');

export const webhookDeleted = () =>
  new WebhookRefused('webhook_deleted', 'The webhook is deleted; make a new one instead.');
