import { randomUUID, randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { recordActivity } from '../activity/record.ts';
import type { EventType } from '../contract/events.ts';
import { askerOf } from '../keys/authority.ts';
import { lockLivingWebhook, type WebhookRequest } from './access.ts';
import { WebhookRefused } from './refused.ts';

/** Made-up data of each type: ids that name nothing. */
const exampleData: Record<EventType, () => object> = {
  'client.started': () => ({ grantId: randomUUID(), kind: 'attorney' }),
  'client.ended': () => ({ grantId: randomUUID(), kind: 'attorney', reason: 'ended' }),
  'seat.given': () => ({ seatId: randomUUID(), grantId: randomUUID() }),
  'seat.ended': () => ({ seatId: randomUUID(), grantId: randomUUID(), reason: 'ended_by_organization' }),
};

/** A test event's id and body: the envelope of a real one with `"test": true`, and ids that name nothing. Source: design, section 6. */
export function makeTestEvent(type: EventType, organizationId: string, at: Date): { id: string; body: string } {
  const id = randomUUIDv7();
  const envelope = {
    id,
    type,
    createdAt: at.toISOString(),
    organization: { id: organizationId },
    data: exampleData[type](),
    test: true,
  };
  return { id, body: JSON.stringify(envelope) };
}

/**
 * Allows a test event, or the probe before a resume, and writes its activity line. The post itself is the caller's next step: it takes seconds, and no transaction stays
 * open for it.
 *
 * @param askedType null: the first type the webhook is subscribed to.
 * @returns the type to send.
 * @throws WebhookRefused when the caller may not, the webhook is deleted, or it is not subscribed to the type.
 */
export function requestTest(em: EntityManager, request: WebhookRequest, askedType: string | null): Promise<EventType> {
  return requestPost(em, request, askedType, 'webhook.test');
}

/**
 * The same for a check whether the receiver verifies signatures: nothing else ever sends it a badly signed event. Whoever carries the check out records its verdict.
 *
 * @returns the type to send.
 * @throws WebhookRefused when the caller may not, or the webhook is deleted.
 */
export function requestSignatureCheck(em: EntityManager, request: WebhookRequest): Promise<EventType> {
  return requestPost(em, request, null, 'webhook.verify');
}

function requestPost(
  em: EntityManager,
  request: WebhookRequest,
  askedType: string | null,
  action: string,
): Promise<EventType> {
  return em.fork().transactional(async (tx) => {
    const { eventTypes } = await lockLivingWebhook(tx, request);
    const eventType = askedType === null ? eventTypes[0] : eventTypes.find((type) => type === askedType);
    if (eventType === undefined) {
      throw new WebhookRefused(
        'unknown_event_type',
        `The webhook is not subscribed to that type; it is to ${eventTypes.join(', ')}.`,
      );
    }
    const { organizationId, webhookId, by } = request;
    await recordActivity(tx, { organizationId, ...askerOf(by), action, detail: { webhookId, eventType } });
    return eventType as EventType;
  });
}
