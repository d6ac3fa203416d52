/**
 * Invalid rows of webhooks and deliveries for constraints.test.ts: the statement, and the
 * constraint that must refuse it.
 */
const eventId = '00000000-0000-7000-8000-000000000001';

const webhook = `insert into webhook (organization_id, url, event_types, slot)
  values ('$org', 'https://a.example/', '{client.ended}', 1)`;
const delivery = `${webhook};
  insert into event (organization_id, id, type, created_at, body, delivery_count)
    values ('$org', '${eventId}', 'client.ended', now(), '{}', 1);
  insert into delivery (organization_id, webhook_id, event_id, state, next_attempt_at, created_at)
    select '$org', id, '${eventId}', 'waiting', now(), now() from webhook`;

const attempt = (number: number) => `
  insert into delivery_attempt (organization_id, webhook_id, event_id, number, round, is_last, signed_with, started_at)
    select '$org', id, '${eventId}', ${number}, 1, false, '{}', now() from webhook`;
const slot = (number: number, organizationSlot = number, hostSlot = number) => `
  insert into concurrency_slot (organization_id, webhook_id, slot, is_slow, organization_slot, host, host_slot,
    event_id, number, started_at,
      admission_id)
    select '$org', id, ${number}, false, ${organizationSlot}, 'a.example', ${hostSlot}, '${eventId}', 1, now(),
      gen_random_uuid() from webhook`;

export const wrongWebhookStates: [state: string, constraint: string, statement: string][] = [
  [
    'a webhook whose URL is longer than 2,000 characters',
    'webhook_url_length',
    `${webhook}; update webhook set url = repeat('a', 2001)`,
  ],
  [
    'a webhook for an event that does not exist',
    'webhook_event_types_known',
    `${webhook}; update webhook set event_types = '{client.moved}'`,
  ],
  ['a webhook in an unknown state', 'webhook_state_known', `${webhook}; update webhook set state = 'asleep'`],
  [
    'a webhook parked for an unknown reason',
    'webhook_parked_reason_known',
    `${webhook}; update webhook set state = 'parked', parked_reason = 'tired'`,
  ],
  ['a webhook parked for no reason', 'webhook_parked_has_reason', `${webhook}; update webhook set state = 'parked'`],
  ['a webhook before its first epoch', 'webhook_epoch_positive', `${webhook}; update webhook set epoch = 0`],
  ['a ramp of no place', 'webhook_ramp_positive', `${webhook}; update webhook set ramp = 0`],
  ['a webhook in a 21st place', 'webhook_slot_of_20', `${webhook}; update webhook set slot = 21`],
  ['two webhooks in one place', 'webhook_slot_unique', `${webhook}; ${webhook}`],
  [
    'a webhook that is managed by an object without an id',
    'webhook_managed_has_both',
    `${webhook}; update webhook set managed_by = 'WebhookSubscription us/a'`,
  ],
  [
    'two webhooks of one object',
    'webhook_managed_unique',
    `${webhook}; ${webhook.replace(', 1)', ', 2)')}; update webhook set managed_by = 'a', managed_uid = '${eventId}'`,
  ],
  [
    'a deleted webhook that keeps its place',
    'webhook_deleted_has_no_slot',
    `${webhook}; update webhook set state = 'deleted'`,
  ],
  [
    'a webhook with an unknown result on its receiver',
    'webhook_signature_result_known',
    `${webhook}; update webhook set signature_result = 'fine', signature_checked_at = now()`,
  ],
  [
    'a webhook with a result of no time',
    'webhook_signature_result_has_time',
    `${webhook}; update webhook set signature_result = 'verified'`,
  ],
  ['a delivery in an unknown state', 'delivery_state_known', `${delivery}; update delivery set state = 'lost'`],
  ['a delivery before its first round', 'delivery_round_positive', `${delivery}; update delivery set round = 0`],
  [
    'a delivery that waits for nothing',
    'delivery_waiting_has_next_attempt',
    `${delivery}; update delivery set next_attempt_at = null`,
  ],
  [
    'a delivery that was settled at no time',
    'delivery_settled_has_time',
    `${delivery}; update delivery set state = 'delivered', next_attempt_at = null`,
  ],
  [
    'a settled delivery that takes a slot',
    'delivery_claimed_is_waiting',
    `${delivery}; update delivery set state = 'delivered', next_attempt_at = null, settled_at = now(), claimed = true`,
  ],
  [
    'an open delivery in the sum of settled ones',
    'delivery_rolled_up_is_settled',
    `${delivery}; update delivery set rolled_up = true`,
  ],
  ['an attempt before the first', 'delivery_attempt_number_positive', `${delivery}; ${attempt(0)}`],
  ['an attempt in an eleventh concurrency slot', 'concurrency_slot_of_10', `${webhook}; ${slot(11)}`],
  ['two attempts in one concurrency slot', 'concurrency_slot_pkey', `${webhook}; ${slot(1)}; ${slot(1, 2, 2)}`],
  [
    'two attempts in one concurrency slot of an organization',
    'concurrency_slot_one_of_organization',
    `${webhook}; ${slot(1)}; ${slot(2, 1)}`,
  ],
  [
    'two attempts of an organization in one concurrency slot at a host',
    'concurrency_slot_one_of_host',
    `${webhook}; ${slot(1)}; ${slot(2, 2, 1)}`,
  ],
  [
    'a concurrency slot of number 0 at its organization',
    'concurrency_slot_organization_slot_positive',
    `${webhook}; ${slot(1, 0)}`,
  ],
  ['a concurrency slot of number 0 at its host', 'concurrency_slot_host_slot_positive', `${webhook}; ${slot(1, 1, 0)}`],
  ['two attempts of a delivery at once', 'delivery_attempt_one_open', `${delivery}; ${attempt(1)}; ${attempt(2)}`],
  [
    'an attempt that ended for no reason',
    'delivery_attempt_finished_has_cause',
    `${delivery}; ${attempt(1)}; update delivery_attempt set finished_at = now()`,
  ],
  [
    'more than 16 KiB of an answer',
    'delivery_attempt_answer_size',
    `${delivery}; ${attempt(1)}; update delivery_attempt set answer = decode(repeat('00', 16385), 'hex')`,
  ],
];
