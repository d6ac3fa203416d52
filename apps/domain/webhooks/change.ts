import type { EntityManager } from '@mikro-orm/postgresql';
import { lockLivingWebhook, recordWebhookActivity, type WebhookRequest } from './access.ts';
import type { AllowList } from './address/addresses.ts';
import { assertDescription, assertUrl, hostOf, readEventTypes } from './fields.ts';
import { WebhookRefused } from './refused.ts';

/** A field that is absent does not change. */
export interface ChangeWebhook extends WebhookRequest {
  url?: string;
  eventTypes?: readonly string[];
  description?: string;
}

/**
 * Changes a webhook, in one transaction with its activity row. A new URL is used from the next
 * attempt on, also for earlier events, and begins without the failures and the signature check of
 * the old one. New event types apply to events from then on.
 *
 * @throws WebhookRefused when the caller may not, a field is refused, the webhook is deleted, or
 * nothing is to be changed.
 */
export async function changeWebhook(em: EntityManager, input: ChangeWebhook, allow: AllowList): Promise<void> {
  await em.fork().transactional(async (tx) => {
    const webhook = await lockLivingWebhook(tx, input);
    const { url, description, eventTypes, changed } = readChange(input, allow);
    if (url !== null) webhook.moveTo(url);
    if (eventTypes !== null) webhook.eventTypes = eventTypes;
    if (description !== null) webhook.description = description;
    await tx.flush();
    await recordWebhookActivity(tx, input, 'webhook.change', {
      changed,
      ...(url === null ? {} : { host: hostOf(url) }),
      ...(eventTypes === null ? {} : { eventTypes }),
    });
  });
}

/** Returns the checked fields; null for one that does not change. */
function readChange(input: ChangeWebhook, allow: AllowList) {
  const changed = (['url', 'eventTypes', 'description'] as const).filter((field) => input[field] !== undefined);
  if (changed.length === 0)
    throw new WebhookRefused('nothing_to_change', 'Change the URL, the event types or the description.');
  const { url = null, description = null } = input;
  if (url !== null) assertUrl(url, allow);
  if (description !== null) assertDescription(description);
  return {
    url,
    description,
    eventTypes: input.eventTypes === undefined ? null : readEventTypes(input.eventTypes),
    changed,
  };
}
