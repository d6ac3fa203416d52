import type { Database } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { lockLivingWebhook, recordWebhookEntry, type WebhookRequest } from './access.ts';
import type { AllowList } from './address/addresses.ts';
import { WebhookError } from './errors.ts';
import {
  assertDescription,
  assertPostsPerSecond,
  assertUrl,
  assertUrlIsFree,
  findHost,
  readEventTypes,
} from './fields.ts';
import { assertHeadersStay, changeHeaders, type HeaderChange } from './headers.ts';
import type { SealingKeys } from './seal.ts';
import type { Webhook } from './webhook.entity.ts';

/** A field that is absent does not change. */
export interface ChangeWebhook extends WebhookRequest {
  url?: string;
  eventTypes?: readonly string[];
  description?: string;
  ordered?: boolean;
  /** The most posts in a second, 1 to 100; null removes the bound. */
  postsPerSecond?: number | null;
  /** Headers to set and to remove, and the keys that seal their values. */
  headers?: { changes: readonly HeaderChange[]; sealingKeys: SealingKeys };
  /** Whether another webhook may have the new URL; false when it is absent. */
  allowSameUrl?: boolean;
}

/**
 * Changes a webhook, in one transaction with its audit entry. A new URL is used from the next
 * attempt on, also for earlier events, and begins without the failures and the signature check of
 * the old one. New event types apply to events from then on, and custom headers to every attempt
 * from then on.
 *
 * @throws WebhookError when the caller may not, a field is rejected, the webhook is deleted,
 * nothing is to be changed, or a URL on another server would get the values of custom headers.
 * @throws SecretNotUnsealedError when custom headers that stay beside a change of others cannot be unsealed.
 */
export async function changeWebhook(database: Database, input: ChangeWebhook, allow: AllowList): Promise<void> {
  await database.change(async (tx) => {
    if (input.url !== undefined) await lockOrganization(tx, input.organizationId);
    const webhook = await lockLivingWebhook(tx, input);
    const { url, ...fields } = readChange(input, allow);
    if (url !== undefined) {
      await assertUrlIsFree(tx, { ...input, url, except: webhook.id });
      assertHeadersStay(webhook, url, input.headers?.changes ?? []);
      webhook.moveTo(url);
    }
    const { postsPerSecond: from } = webhook;
    const headers = input.headers && changeHeaders(webhook, input.headers.changes, input.headers.sealingKeys);
    Object.assign(webhook, fields);
    await tx.flush();
    const { postsPerSecond: to } = fields;
    await recordWebhookEntry(tx, input, 'webhook.change', {
      changed: changeable.filter((field) => input[field] !== undefined),
      ...describeFields(url, fields),
      ...(to === undefined ? {} : { postsPerSecond: { from, to } }),
      ...(headers === undefined ? {} : { headers: { from: headers.from, to: headers.to }, headersSet: headers.set }),
    });
  });
}

/** Returns what the log has of the fields whose new value alone it has. */
const describeFields = (url: string | undefined, { eventTypes, ordered }: Partial<Webhook>) => ({
  ...(url === undefined ? {} : { host: findHost(url) }),
  ...(eventTypes === undefined ? {} : { eventTypes }),
  ...(ordered === undefined ? {} : { ordered }),
});

const changeable = ['url', 'eventTypes', 'description', 'ordered', 'postsPerSecond', 'headers'] as const;

/** Returns the checked fields that change. */
function readChange(input: ChangeWebhook, allow: AllowList) {
  if (changeable.every((field) => input[field] === undefined))
    throw new WebhookError(
      'nothing_to_change',
      'Change the URL, the event types, the description, the order, the requests per second or the headers.',
    );
  const { url, description, eventTypes, ordered, postsPerSecond } = input;
  if (url !== undefined) assertUrl(url, allow);
  if (description !== undefined) assertDescription(description);
  if (postsPerSecond !== undefined) assertPostsPerSecond(postsPerSecond);
  return {
    ...(url === undefined ? {} : { url }),
    ...(description === undefined ? {} : { description }),
    ...(ordered === undefined ? {} : { ordered }),
    ...(postsPerSecond === undefined ? {} : { postsPerSecond }),
    ...(eventTypes === undefined ? {} : { eventTypes: readEventTypes(eventTypes) }),
  };
}
