import { type EventType, eventDescriptions, eventTypes } from '#domain/contract/events.ts';
import { deliveryHeaderExamples, eventExamples } from './examples.ts';
import { eventSchema, eventSchemaName } from './schemas.ts';

export const eventTag = {
  name: 'Events',
  description:
    'What the service posts to the organization’s own https addresses, registered in the console ' +
    'for the types they want.',
};

interface DeliveryHeader {
  description: string;
  required: boolean;
  schema: object;
}

const deliveryHeaders: Record<keyof typeof deliveryHeaderExamples, DeliveryHeader> = {
  'Service-Signature': {
    description:
      'The time of sending in Unix seconds, and for each secret in use (newest first) the ' +
      'hexadecimal HMAC-SHA-256 of `<t>.<body>`; the key is the whole secret as UTF-8.',
    required: true,
    schema: { type: 'string', pattern: '^t=\\d+(,v1=[0-9a-f]{64})+$' },
  },
  'webhook-id': {
    description: 'The event’s id, identical on every retry.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'webhook-timestamp': {
    description: 'The time of sending in Unix seconds, as in `Service-Signature`.',
    required: true,
    schema: { type: 'integer', format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  },
  'webhook-signature': {
    description:
      'For each secret in use the base64 HMAC-SHA-256 of `<webhook-id>.<webhook-timestamp>.<body>`; ' +
      'the key is what follows `whsec_`, decoded from base64. As in Standard Webhooks.',
    required: true,
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$' },
  },
  'webhook-endpoint': {
    description:
      'The id of the webhook that this delivery is of. A receiver of several webhooks chooses by it the secrets ' +
      'with which it checks the signature.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
  },
  'webhook-attempt': {
    description:
      'The number of this attempt. Attempts that sent nothing count too, so a receiver may miss numbers; one can ' +
      'come twice after the service lost its last second in a failover.',
    required: true,
    schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 2_147_483_647 },
  },
  'webhook-sequence': {
    description:
      'Counts this webhook’s events without gaps, in the order in which the service first took them up to send ' +
      'them, so that a receiver can detect a missed one. It is no order of events: compare `createdAt` of one seat ' +
      'or grant, and this number only between two events of the same webhook within a millisecond. A number can ' +
      'come twice, with two event ids, or be left out, after the service lost its last second in a failover: ' +
      'recognize repeats by the event id. Test events have none.',
    required: false,
    schema: { type: 'integer', format: 'int64', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  },
};

/** The delivery's headers. They are no components, for the reason of `eventSchema`. */
const deliveryParameters = Object.entries(deliveryHeaders).map(([name, { description, required, schema }]) => ({
  name,
  in: 'header',
  description,
  required,
  schema,
  example: deliveryHeaderExamples[name as keyof typeof deliveryHeaders],
}));

const summaries: Record<EventType, string> = {
  'client.started': 'A family started working with the organization',
  'client.ended': 'A family stopped working with the organization',
  'seat.given': 'A client family got a seat',
  'seat.ended': 'A seat ended',
  'webhook.failing': 'The receiver of another webhook is failing',
  'webhook.suspended': 'Another webhook was suspended',
  'key.expiring': 'An API key expires soon',
};

/** `client.started` is `onClientStarted`. */
export function eventOperationId(type: EventType): string {
  return `on${eventSchemaName(type).replace(/Event$/, '')}`;
}

/**
 * Returns `webhooks`: one POST for each event type, sent by the service and answered by the
 * receiver.
 */
export function webhooks(): Record<string, object> {
  return Object.fromEntries(eventTypes.map((type) => [type, { post: delivery(type) }]));
}

function delivery(type: EventType): object {
  return {
    operationId: eventOperationId(type),
    summary: summaries[type],
    description: eventDescriptions[type],
    tags: [eventTag.name],
    security: [],
    parameters: deliveryParameters,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: eventSchema(type), examples: { event: eventExamples[type] } } },
    },
    responses: {
      '2XX': { $ref: '#/components/responses/Received' },
      default: { $ref: '#/components/responses/NotReceived' },
    },
  };
}

/** What a receiver's response means, as shared responses. */
export const receiverResponses = {
  Received: {
    description: 'The event has arrived, if the status is here within 10 seconds. The answer’s body is not used.',
  },
  NotReceived: {
    description:
      'Any other status, a redirect, or no status within 10 seconds: the event is sent again, by default 12 ' +
      'times in about 72 hours. `Retry-After` on a 429 or 503 delays all events of the webhook that long, up to an ' +
      'hour. 410 suspends the webhook.',
  },
};
