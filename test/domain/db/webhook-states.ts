/**
 * Invalid rows of webhooks and deliveries for constraints.test.ts: the statement, and the
 * constraint that must reject it.
 */
const eventId = '00000000-0000-7000-8000-000000000001';

const webhook = `insert into webhook (organization_id, url, event_types, number)
  values ('$org', 'https://a.example/', '{client.ended}', 1)`;
const delivery = `${webhook};
  insert into event (organization_id, id, type, created_at, body, delivery_count)
    values ('$org', '${eventId}', 'client.ended', now(), '{}', 1);
  insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
    select '$org', id, '${eventId}', 'queued', now(), now() from webhook`;

const attempt = (number: number) => `
  insert into delivery_attempt (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
    signed_with, started_at)
    select '$org', id, '${eventId}', gen_random_uuid(), ${number}, 1, false, '{}', now() from webhook`;
const slot = (attemptId = 'null') => `
  insert into slot (organization_id, webhook_id, event_id, run, host, degraded, attempt_id, until)
    select '$org', id, '${eventId}', 1, 'a.example', false, ${attemptId}, now() from webhook`;

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
    'a webhook suspended for an unknown reason',
    'webhook_suspended_reason_known',
    `${webhook}; update webhook set state = 'suspended', suspended_reason = 'tired'`,
  ],
  [
    'a webhook suspended for no reason',
    'webhook_suspended_has_reason',
    `${webhook}; update webhook set state = 'suspended'`,
  ],
  [
    'a receiver with a concurrency of 0',
    'receiver_concurrency_of_10',
    `${webhook}; update receiver set concurrency = 0`,
  ],
  [
    'a receiver with a concurrency of 11',
    'receiver_concurrency_of_10',
    `${webhook}; update receiver set concurrency = 11`,
  ],
  ['a second receiver of a webhook', 'receiver_pkey', `${webhook}; insert into receiver select * from receiver`],
  [
    'a negative number of exhausted deliveries',
    'receiver_exhausted_in_row_not_negative',
    `${webhook}; update receiver set exhausted_in_row = -1`,
  ],
  [
    'a sequence before its first number',
    'receiver_next_sequence_positive',
    `${webhook}; update receiver set next_sequence = 0`,
  ],
  ['a webhook with a 21st number', 'webhook_number_of_20', `${webhook}; update webhook set number = 21`],
  ['two webhooks with one number', 'webhook_number_unique', `${webhook}; ${webhook}`],
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
    'a deleted webhook that keeps its number',
    'webhook_deleted_has_no_number',
    `${webhook}; update webhook set state = 'deleted'`,
  ],
  [
    'a webhook that gets nothing in any second',
    'webhook_posts_per_second_of_100',
    `${webhook}; update webhook set posts_per_second = 0`,
  ],
  [
    'a custom header that the service sets',
    'webhook_header_names_allowed',
    `${webhook}; update webhook set header_names = '{webhook-id}', headers_sealed = ''`,
  ],
  [
    'the name of a custom header without a value',
    'webhook_headers_have_names',
    `${webhook}; update webhook set header_names = '{X-Key}'`,
  ],
  [
    'more custom headers than a webhook may have',
    'webhook_headers_size',
    `${webhook}; update webhook set header_names = '{X-Key}', headers_sealed = decode(repeat('00', 16385), 'hex')`,
  ],
  [
    'a deleted webhook that keeps its custom headers',
    'webhook_deleted_has_no_headers',
    `${webhook}; update webhook set state = 'deleted', number = null, header_names = '{X-Key}', headers_sealed = ''`,
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
  [
    'a delivery in an unknown state',
    'delivery_state_known',
    `${delivery}; update delivery set state = 'lost', due_at = null`,
  ],
  ['a delivery before its first run', 'delivery_run_not_negative', `${delivery}; update delivery set run = -1`],
  [
    'a delivery with fewer failures than none',
    'delivery_failures_not_negative',
    `${delivery}; update delivery set failures = -1`,
  ],
  ['an open delivery that is never due', 'delivery_open_is_due', `${delivery}; update delivery set due_at = null`],
  [
    'a delivery that was settled at no time',
    'delivery_settled_has_time',
    `${delivery}; update delivery set state = 'delivered', due_at = null`,
  ],
  [
    'a settled delivery that is due',
    'delivery_open_is_due',
    `${delivery}; update delivery set state = 'delivered', settled_at = now()`,
  ],
  [
    'an open delivery in the sum of settled ones',
    'delivery_rolled_up_is_settled',
    `${delivery}; update delivery set rolled_up = true`,
  ],
  ['an attempt before the first', 'delivery_attempt_number_positive', `${delivery}; ${attempt(0)}`],
  ['two slots of one delivery, hence two attempts at once', 'slot_pkey', `${delivery}; ${slot()}; ${slot()}`],
  [
    'an admitted attempt without the time of its admission',
    'slot_admitted_has_both',
    `${delivery}; ${slot('gen_random_uuid()')}`,
  ],
  [
    'an attempt that ended for no reason',
    'delivery_attempt_finished_has_cause',
    `${delivery}; ${attempt(1)}; update delivery_attempt set finished_at = now()`,
  ],
  [
    'more than 16 KiB of a response',
    'delivery_attempt_response_size',
    `${delivery}; ${attempt(1)}; update delivery_attempt set response = decode(repeat('00', 16385), 'hex')`,
  ],
];
