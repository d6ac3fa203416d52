import { dayMs } from '../contract/durations.ts';
import type { Queryable } from '../db/database.ts';
import { assertMayUse, noSuchWebhook, type WebhookRequest, webhookDeleted } from './access.ts';
import { WebhookError } from './errors.ts';
import { redeliverableDays } from './limits.ts';

/** @throws WebhookError when the caller may not, or the webhook cannot send. */
export async function assertSendable(db: Queryable, request: WebhookRequest): Promise<void> {
  const webhook = await assertMayUse(db, request);
  if (webhook === null) throw noSuchWebhook();
  if (webhook.state === 'deleted') throw webhookDeleted();
  if (webhook.state !== 'active') throw webhookNotActive();
}

/** Returns the time before which events can no longer be sent again. */
export const oldestRedeliverable = (now: Date) => new Date(now.getTime() - redeliverableDays * dayMs);

const webhookNotActive = () =>
  new WebhookError(
    'webhook_not_active',
    'This webhook is paused or suspended. Resume it first, which sends held deliveries.',
  );

export const eventTooOld = () =>
  new WebhookError('event_too_old', `You can redeliver only events of the last ${redeliverableDays} days.`);
