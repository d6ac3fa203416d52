import type { EntityManager } from '@mikro-orm/postgresql';
import { askerOf } from '../access/authority.ts';
import { recordActivity } from '../activity/record.ts';
import { arrayOf, runStatement, sql } from '../db/statement.ts';
import { lockLivingWebhook, type WebhookRequest } from './access.ts';
import type { AllowList } from './address/addresses.ts';
import { assertDescription, assertUrl, hostOf, readEventTypes } from './fields.ts';
import { WebhookRefused } from './refused.ts';

/** What is left out stays. */
export interface ChangeWebhook extends WebhookRequest {
  url?: string;
  eventTypes?: readonly string[];
  description?: string;
}

/**
 * Changes a webhook, in one transaction with its activity line. A new URL is used from the next
 * attempt on, also for events that happened before, and begins without the failures of the old one
 * and without its verdict on signatures; new event types hold for events that happen from then on.
 *
 * @throws WebhookRefused when the caller may not, a field is refused, the webhook is deleted, or
 * nothing is to be changed.
 */
export async function changeWebhook(em: EntityManager, input: ChangeWebhook, allow: AllowList): Promise<void> {
  const { organizationId, webhookId, by } = input;
  await em.fork().transactional(async (tx) => {
    const before = await lockLivingWebhook(tx, input);
    const { url, description, eventTypes, changed } = readChange(input, allow);
    const isMoved = url !== null && url !== before.url;
    await runStatement(
      tx,
      sql`
      update webhook set
        url = coalesce(${url}, url),
        event_types = coalesce(${eventTypes === null ? null : arrayOf(eventTypes)}::text[], event_types),
        description = coalesce(${description}, description),
        failing_since = case when not ${isMoved} then failing_since end,
        signature_verdict = case when not ${isMoved} then signature_verdict end,
        signature_checked_at = case when not ${isMoved} then signature_checked_at end
      where organization_id = ${organizationId} and id = ${webhookId}`,
    );
    await recordActivity(tx, {
      organizationId,
      ...askerOf(by),
      action: 'webhook.change',
      detail: {
        webhookId,
        changed,
        ...(url === null ? {} : { host: hostOf(url) }),
        ...(eventTypes === null ? {} : { eventTypes }),
      },
    });
  });
}

/** The fields, judged; null for one that stays. */
function readChange(input: ChangeWebhook, allow: AllowList) {
  const changed = (['url', 'eventTypes', 'description'] as const).filter((field) => input[field] !== undefined);
  if (changed.length === 0)
    throw new WebhookRefused('nothing_to_change', 'Say what to change: the URL, the event types or the description.');
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
