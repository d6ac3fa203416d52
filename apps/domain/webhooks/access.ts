import { type Authority, type ClusterObject, findPermissions } from '../access/authority.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { WebhookError } from './errors.ts';
import { Webhook } from './webhook.entity.ts';

/** The caller of a change of webhooks. */
export type WebhookAuthority = Authority | ClusterObject;

export interface WebhooksRequest {
  organizationId: string;
  by: WebhookAuthority;
}

export interface WebhookRequest extends WebhooksRequest {
  webhookId: string;
}

/**
 * Allows an operator, a cluster object, and an active member with `org.webhooks.manage`.
 *
 * @throws WebhookError `may_not_manage_webhooks`
 */
export async function assertMayManageWebhooks(db: Queryable, { organizationId, by }: WebhooksRequest): Promise<void> {
  if (by === 'orgctl' || 'objectUid' in by) return;
  const permissions = await findPermissions(db, organizationId, by.personId);
  if (permissions?.has('org.webhooks.manage')) return;
  throw new WebhookError(
    'may_not_manage_webhooks',
    'Only an active member with a role that may manage webhooks (org.webhooks.manage) can do this.',
  );
}

/**
 * Rejects a member's change of a webhook that a cluster object manages, and an object's change of a
 * webhook that it does not manage. An operator at the command line may change both.
 *
 * @throws WebhookError `webhook_managed` or `webhook_not_managed`
 */
function assertManager(webhook: Pick<Webhook, 'managedBy' | 'managedUid'>, by: WebhookAuthority): void {
  if (by === 'orgctl') return;
  if ('objectUid' in by) {
    if (webhook.managedUid === by.objectUid) return;
    throw new WebhookError('webhook_not_managed', `${by.objectName} does not manage this webhook.`);
  }
  if (webhook.managedBy === null) return;
  throw new WebhookError(
    'webhook_managed',
    `This webhook is managed by ${webhook.managedBy} in Kubernetes. Change it there.`,
  );
}

/**
 * Returns the webhook in order to change it. Its row is locked until the transaction ends, so
 * changes come one after another. Its deliveries continue meanwhile: no statement that claims,
 * admits or records an attempt locks a row of `webhook`.
 *
 * @throws WebhookError when the caller may not, there is no such webhook, or it is managed by
 * another.
 */
export async function lockWebhook(tx: Transaction, request: WebhookRequest): Promise<Webhook> {
  const { organizationId, webhookId, by } = request;
  await assertMayManageWebhooks(tx, request);
  const webhook = await tx.findOne(Webhook, { organizationId, id: webhookId }, writeLock);
  if (webhook === null) throw noSuchWebhook();
  assertManager(webhook, by);
  return webhook;
}

/**
 * Returns the webhook as `lockWebhook` does, for changes that need one that is not deleted.
 *
 * @throws WebhookError also when it is deleted.
 */
export async function lockLivingWebhook(tx: Transaction, request: WebhookRequest): Promise<Webhook> {
  const webhook = await lockWebhook(tx, request);
  if (webhook.state === 'deleted') throw webhookDeleted();
  return webhook;
}

/**
 * Lets the caller use a webhook without a change of its row. Returns it without a lock; null when
 * the organization has none of this id.
 *
 * @throws WebhookError when the caller may not, or the webhook is managed by another.
 */
export async function assertMayUse(db: Queryable, request: WebhookRequest): Promise<Webhook | null> {
  const { organizationId, webhookId, by } = request;
  await assertMayManageWebhooks(db, request);
  const webhook = await db.findOne(Webhook, { organizationId, id: webhookId });
  if (webhook !== null) assertManager(webhook, by);
  return webhook;
}

/** Returns the organization of a webhook, for operators, who name it by id only; else null. */
export async function findWebhookOrganization(db: Queryable, webhookId: string): Promise<string | null> {
  const webhook = await db.findOne(Webhook, { id: webhookId }, { fields: ['organizationId'] });
  return webhook?.organizationId ?? null;
}

/** Records an action on a webhook, in the transaction of the change. */
export const recordWebhookEntry = (
  tx: Transaction,
  { organizationId, webhookId, by }: WebhookRequest,
  action: string,
  detail: Record<string, unknown> = {},
): Promise<void> => recordAuditEntry(tx, { organizationId, by, action, detail: { webhookId, ...detail } });

export const noSuchWebhook = () => new WebhookError('no_such_webhook', 'The organization has no such webhook.');

export const webhookDeleted = () => new WebhookError('webhook_deleted', 'The webhook is deleted. Add a new one.');
