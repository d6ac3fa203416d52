import { randomUUIDv7 } from 'node:crypto';
import { Organization } from '../access/membership.entity.ts';
import type { Database, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { assertMayManageWebhooks, recordWebhookEntry, type WebhookAuthority, type WebhooksRequest } from './access.ts';
import type { AllowList } from './address/addresses.ts';
import { WebhookError } from './errors.ts';
import {
  assertDescription,
  assertPostsPerSecond,
  assertSecret,
  assertUrl,
  assertUrlIsFree,
  findHost,
  readEventTypes,
} from './fields.ts';
import { changeHeaders } from './headers.ts';
import { webhooksPerOrganization } from './limits.ts';
import { type CustomHeader, type SealingKeys, sealSecret } from './seal.ts';
import { generateSecret } from './secret.ts';
import { Webhook, WebhookSecret } from './webhook.entity.ts';

/** A webhook to create. A cluster object (`by`) manages it from then on. */
export interface CreateWebhook extends WebhooksRequest {
  url: string;
  eventTypes: readonly string[];
  description: string;
  /** Whether the events of one seat or grant are sent one after the other; true when it is absent. */
  ordered?: boolean;
  /** Whether another webhook may have the same URL; false when it is absent. */
  allowSameUrl?: boolean;
  /** The most posts in a second, 1 to 100; no bound when it is absent or null. */
  postsPerSecond?: number | null;
  /** Headers of every request; none when it is absent. */
  headers?: readonly CustomHeader[];
  /** The signing secret; a new one when it is absent. */
  secret?: string;
}

/** The settings of the installation that webhooks need. */
export interface WebhookSettings {
  /** Addresses that webhooks may use although they are not public. */
  allow: AllowList;
  /** Newest first; the first seals. */
  sealingKeys: SealingKeys;
}

/**
 * Subscribes a URL to event types, in one transaction with its audit entry. It receives the events
 * from its commit on. Show the returned `secret` once, and store it nowhere.
 *
 * @throws WebhookError when the caller may not manage webhooks, another one has the URL, the URL,
 * an event type, the description, the bound, a header or the secret is rejected, there is no such organization, or it
 * has 20 webhooks already.
 */
export async function createWebhook(
  database: Database,
  input: CreateWebhook,
  { allow, sealingKeys }: WebhookSettings,
): Promise<{ id: string; secret: string }> {
  const { organizationId, by, url, description, ordered = true, postsPerSecond = null } = input;
  const { headers = [], secret = generateSecret() } = input;
  return database.change(async (tx) => {
    await assertMayManageWebhooks(tx, input);
    assertUrl(url, allow);
    assertDescription(description);
    assertPostsPerSecond(postsPerSecond);
    assertSecret(secret);
    const eventTypes = readEventTypes(input.eventTypes);
    const number = await findFreeNumber(tx, organizationId);
    await assertUrlIsFree(tx, input);
    const id = randomUUIDv7();
    const createdAt = new Date();
    const webhook = tx.create(Webhook, {
      organizationId,
      id,
      url,
      description,
      eventTypes,
      ordered,
      postsPerSecond,
      headerNames: [],
      headersSealed: null,
      number,
      createdAt,
      state: 'active',
      suspendedReason: null,
      signatureResult: null,
      signatureCheckedAt: null,
      ...getManager(by),
    });
    const { to: headerNames } = changeHeaders(webhook, headers, sealingKeys);
    await tx.flush(); // the secret's row refers to it
    const sealed = sealSecret(secret, { organizationId, webhookId: id }, sealingKeys);
    tx.create(WebhookSecret, {
      organizationId,
      webhookId: id,
      id: randomUUIDv7(),
      sealed,
      createdAt,
      validUntil: null,
    });
    await tx.flush();
    const created = { organizationId, webhookId: id, by };
    await recordWebhookEntry(tx, created, 'webhook.create', {
      host: findHost(url),
      eventTypes,
      ...(postsPerSecond === null ? {} : { postsPerSecond }),
      ...(headerNames.length === 0 ? {} : { headers: headerNames }),
    });
    return { id, secret };
  });
}

const getManager = (by: WebhookAuthority) =>
  by !== 'orgctl' && 'objectUid' in by
    ? { managedBy: by.objectName, managedUid: by.objectUid }
    : { managedBy: null, managedUid: null };

/**
 * Returns the lowest free of the organization's 20 numbers. The unique index on numbers rejects a
 * 21st webhook of every writer; with the lock, concurrent callers get different numbers and no
 * error.
 */
async function findFreeNumber(tx: Transaction, organizationId: string): Promise<number> {
  await lockOrganization(tx, organizationId);
  if ((await tx.count(Organization, { id: organizationId })) === 0)
    throw new WebhookError('no_such_organization', 'There is no such organization.');
  const living = await tx.find(Webhook, { organizationId, number: { $ne: null } }, { fields: ['number'] });
  const used = new Set(living.map(({ number }) => number));
  for (let number = 1; number <= webhooksPerOrganization; number += 1) if (!used.has(number)) return number;
  throw new WebhookError(
    'too_many_webhooks',
    `The organization has ${webhooksPerOrganization} webhooks, which is the maximum. Delete one first.`,
  );
}
