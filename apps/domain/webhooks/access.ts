import type { EntityManager } from '@mikro-orm/postgresql';
import { type Authority, findPermissions } from '../access/authority.ts';
import { Webhook } from '../db/entities/webhook.ts';
import { writeLock } from '../db/locks.ts';
import { WebhookRefused } from './refused.ts';

/** A webhook, and the caller. */
export interface WebhookRequest {
  organizationId: string;
  webhookId: string;
  by: Authority;
}

/**
 * Lets an operator pass, and an active member who holds `org.webhooks.manage`.
 *
 * @throws WebhookRefused `may_not_manage_webhooks`
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
 * Returns the webhook for a change of it. Its row is locked until the transaction ends, so changes
 * come one after the other; claims of the relay skip it meanwhile.
 *
 * Never wait for a delivery's row while holding it: the record of an attempt holds its delivery and
 * then takes the webhook, and the two would block each other.
 *
 * @throws WebhookRefused when the caller may not, or there is no such webhook.
 */
export async function lockWebhook(tx: EntityManager, request: WebhookRequest): Promise<Webhook> {
  const { organizationId, webhookId, by } = request;
  await assertMayManageWebhooks(tx, organizationId, by);
  const webhook = await tx.findOne(Webhook, { organizationId, id: webhookId }, writeLock);
  if (webhook === null) throw noSuchWebhook();
  return webhook;
}

/**
 * Returns the webhook as `lockWebhook` does, for changes that make no sense once it is deleted.
 *
 * @throws WebhookRefused also when it is deleted.
 */
export async function lockLivingWebhook(tx: EntityManager, request: WebhookRequest): Promise<Webhook> {
  const webhook = await lockWebhook(tx, request);
  if (webhook.state === 'deleted') throw webhookDeleted();
  return webhook;
}

/**
 * Returns the organization of a webhook, for operators, who name webhooks by id alone; null when
 * there is none.
 */
export async function findWebhookOrganization(em: EntityManager, webhookId: string): Promise<string | null> {
  const webhook = await em.fork().findOne(Webhook, { id: webhookId }, { fields: ['organizationId'] });
  return webhook?.organizationId ?? null;
}

export const noSuchWebhook = () => new WebhookRefused('no_such_webhook', 'The organization has no such webhook.');

export const webhookDeleted = () => new WebhookRefused('webhook_deleted', 'The webhook is deleted. Add a new one.');
