/** The envelope and payloads of webhook events. */
import { z } from 'zod';
import { grantEndReasons, grantKinds, seatEndReasons, suspendReasons } from './choices.ts';

const uuid = z.guid();
const moment = z.iso.datetime();
const otherWebhook = uuid.describe('Another webhook of the organization.');
const grantId = uuid.describe('The consent grant, as in the roster.');
const seatId = uuid.describe('The `id` of the seat in `getOrgSeatFamilies`.');
const grantKind = z.enum(grantKinds).describe('How the professional works with the family.');

/** The content of `data`, per event type. */
export const eventData = {
  'client.started': z.object({
    grantId,
    kind: grantKind,
  }),
  'client.ended': z.object({
    grantId,
    kind: grantKind,
    reason: z.enum(grantEndReasons).describe('`ended`: access ended; `moved`: the professional moved the work out.'),
  }),
  'seat.given': z.object({ seatId, grantId }),
  'seat.ended': z.object({ seatId, grantId, reason: z.enum(seatEndReasons) }),
  'webhook.failing': z.object({
    webhookId: otherWebhook,
    failingSince: moment.describe('Since when nothing was accepted.'),
  }),
  'webhook.suspended': z.object({
    webhookId: otherWebhook,
    suspendedAt: moment,
    reason: z
      .enum(suspendReasons)
      .describe('`failures`: its receiver accepted nothing for days; `gone`: it answered 410.'),
  }),
  'key.expiring': z.object({
    keyId: uuid.describe('The key, as in the console.'),
    keyPrefix: z.string().describe('Its beginning.'),
    expiresAt: moment,
  }),
} as const;

export type EventType = keyof typeof eventData;

/** Every event type, in the order in which it is documented. */
export const eventTypes = Object.keys(eventData) as EventType[];

/** What the service finds out about the webhooks and keys of an organization, for those who operate its systems. */
export const operationalTypes = ['webhook.failing', 'webhook.suspended', 'key.expiring'] as const;
type OperationalType = (typeof operationalTypes)[number];

/** Types of events about changes of clients and seats, which is what the service's own webhooks get. */
export type ChangeType = Exclude<EventType, OperationalType>;

export const changeTypes = eventTypes.filter(
  (type): type is ChangeType => !operationalTypes.some((one) => one === type),
);

/** When each event is sent, in a sentence for people. */
export const eventDescriptions: Record<EventType, string> = {
  'client.started': 'One of the organization’s professionals was given access to a family under the organization.',
  'client.ended':
    'A family stopped working with the organization: access ended, or the professional moved the work out.',
  'seat.given': 'The organization assigned a seat to a client family.',
  'seat.ended': 'A seat ended, with the reason.',
  'webhook.failing': 'Another webhook’s receiver has accepted nothing for an hour; at most once a day for each.',
  'webhook.suspended': 'Another webhook was suspended: nothing is sent to its receiver until it is resumed.',
  'key.expiring': 'An API key without a successor expires in 14 days, in 3 days or in one day.',
};

/** Returns the body of one event type. Only `test` is optional, and no real event has it. */
export function eventEnvelope(type: EventType) {
  return z.object({
    id: uuid.describe('Identical on every retry, so that a repeat can be ignored.'),
    type: z.literal(type),
    createdAt: z.iso
      .datetime()
      .describe(
        'When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat ' +
          'or grant.',
      ),
    organization: z.object({ id: uuid }),
    data: eventData[type],
    test: z
      .literal(true)
      .optional()
      .describe(
        'Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name ' +
          'nothing. Answer it like any other and act on none of it.',
      ),
  });
}

/**
 * Returns the least id of an event at or after a time. Ids of events are UUIDs of version 7,
 * created by the database of the event's time, so their order is the order of time, and the key of
 * deliveries is also their index by time. The id is a second earlier, so that rows need not agree to
 * the millisecond.
 */
export function firstEventIdAt(moment: Date): string {
  const milliseconds = Math.max(0, moment.getTime() - 1_000);
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
