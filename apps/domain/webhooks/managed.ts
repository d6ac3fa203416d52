import { sql } from 'kysely';
import type { Database, Queryable } from '../db/database.ts';
import {
  assertMayUse,
  lockLivingWebhook,
  noSuchWebhook,
  recordWebhookEntry,
  type WebhookRequest,
  webhookDeleted,
} from './access.ts';
import { maxHealthDeliveries } from './health.ts';
import { type CustomHeader, type SealingKeys, unsealHeaders, unsealSecret } from './seal.ts';
import type { WebhookHead } from './summary.ts';
import { WebhookSecret, type WebhookState } from './webhook.entity.ts';

/** A webhook that an object of the cluster manages. Times are UTC. */
export interface ManagedWebhook
  extends Pick<
    WebhookHead,
    | 'organizationId'
    | 'id'
    | 'url'
    | 'eventTypes'
    | 'ordered'
    | 'postsPerSecond'
    | 'headerNames'
    | 'suspendedReason'
    | 'failingSince'
  > {
  state: Exclude<WebhookState, 'deleted'>;
  /** The newest secret: its id, and when it began to sign. */
  secretId: string;
  secretCreatedAt: string;
  /** When the latest of the newest 500 accepted deliveries was; null for none. */
  lastDeliveredAt: string | null;
}

/** Returns the webhook that a cluster object manages and that is not deleted; null for none. */
export async function findManagedWebhook(db: Queryable, objectUid: string): Promise<ManagedWebhook | null> {
  const [webhook] = await db.query(sql<ManagedWebhook>`
    select w.organization_id as "organizationId", w.id, w.url, w.event_types as "eventTypes", w.ordered,
      w.posts_per_second as "postsPerSecond", w.header_names as "headerNames", w.state,
      w.suspended_reason as "suspendedReason", api.utc(r.failing_since) as "failingSince", s.id as "secretId",
      api.utc(s.created_at) as "secretCreatedAt", api.utc(l.settled_at) as "lastDeliveredAt"
    from webhook w
    join receiver r on r.organization_id = w.organization_id and r.webhook_id = w.id
    join webhook_secret s on s.organization_id = w.organization_id and s.webhook_id = w.id and s.valid_until is null
    cross join lateral (
      select max(d.settled_at) filter (where d.state = 'delivered') as settled_at from (
        select d.settled_at, d.state from delivery d
        where d.organization_id = w.organization_id and d.webhook_id = w.id
        order by d.event_id desc
        limit ${maxHealthDeliveries}
      ) d
    ) l
    where w.managed_uid = ${objectUid}::uuid and w.state <> 'deleted'`);
  return webhook ?? null;
}

/**
 * Returns the newest signing secret of a webhook, so that an operator that was killed after storing
 * a secret can still publish it where its receiver reads it, and the custom headers.
 *
 * @throws WebhookError when the webhook is deleted, not there, or managed by another.
 * @throws SecretNotUnsealedError when none of the keys unseals one of them.
 */
export async function getSealedValues(
  db: Queryable,
  request: WebhookRequest,
  sealingKeys: SealingKeys,
): Promise<{ id: string; secret: string; headers: CustomHeader[] }> {
  const { organizationId, webhookId } = request;
  const webhook = await assertMayUse(db, request);
  if (webhook === null) throw noSuchWebhook();
  if (webhook.state === 'deleted') throw webhookDeleted();
  const { id, sealed } = await db.findOneOrFail(WebhookSecret, { organizationId, webhookId, validUntil: null });
  const owner = { organizationId, webhookId };
  const { headersSealed } = webhook;
  return {
    id,
    secret: unsealSecret(Buffer.from(sealed), owner, sealingKeys),
    headers: headersSealed === null ? [] : unsealHeaders(Buffer.from(headersSealed), owner, sealingKeys),
  };
}

/**
 * Detaches a managed webhook from its object, and gives it to the organization's members, with an
 * audit entry. It keeps its URL, secrets and deliveries. Detaching it again changes nothing and is
 * not recorded.
 *
 * @throws WebhookError when the caller may not, or the webhook is deleted or managed by another.
 */
export async function detachWebhook(database: Database, request: WebhookRequest): Promise<void> {
  await database.change(async (tx) => {
    const webhook = await lockLivingWebhook(tx, request);
    if (webhook.managedBy === null) return;
    // Before the change: afterwards the webhook does not name the object that detached it.
    await recordWebhookEntry(tx, request, 'webhook.detach');
    webhook.detach();
    await tx.flush();
  });
}
