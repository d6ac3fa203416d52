/**
 * Invalid redelivery rows for constraints.test.ts: the statement, and the constraint that must
 * reject it.
 */
const ask = (columns = 'failed_since', values = 'now()') => `
  insert into redelivery (organization_id, webhook_id, ${columns}) select '$org', w.id, ${values} from webhook w`;
const redelivery = `
  insert into webhook (organization_id, url, event_types, number)
    values ('$org', 'https://a.example/', '{client.ended}', 1)`;
const requested = `${redelivery}; ${ask()}`;

export const wrongRedeliveryStates: [state: string, constraint: string, statement: string][] = [
  [
    'a redelivery of nothing',
    'redelivery_one_selection',
    `${redelivery}; insert into redelivery (organization_id, webhook_id) select '$org', id from webhook`,
  ],
  [
    'a redelivery of a range and of what failed',
    'redelivery_one_selection',
    `${redelivery}; ${ask('failed_since, range_from, range_to', "now(), now() - interval '1 day', now()")}`,
  ],
  ['a redelivery of half a range', 'redelivery_one_selection', `${redelivery}; ${ask('range_from')}`],
  [
    'a redelivery of a range that ends as it begins',
    'redelivery_range_not_empty',
    `${redelivery}; ${ask('range_from, range_to', 'now(), now()')}`,
  ],
  ['two open redeliveries of a webhook', 'redelivery_one_open', `${requested}; ${ask()}`],
  ['a redelivery in an unknown state', 'redelivery_state_known', `${requested}; update redelivery set state = 'lost'`],
  [
    'a redelivery without a requester',
    'redelivery_requester',
    `${redelivery}; ${ask('failed_since, requested_by', "now(), 'nobody'")}`,
  ],
  [
    'a redelivery of another organization’s webhook',
    'redelivery_webhook',
    `insert into redelivery (organization_id, webhook_id, failed_since) values ('$org', gen_random_uuid(), now())`,
  ],
  [
    'a redelivery whose selection names more than it saw',
    'redelivery_counts_add_up',
    `${requested}; update redelivery set seen = 1, matched = 2`,
  ],
  [
    'a redelivery that sent more than its selection names',
    'redelivery_counts_add_up',
    `${requested}; update redelivery set seen = 2, matched = 1, queued = 2`,
  ],
  [
    'a redelivery that ended at no time',
    'redelivery_finished_has_time',
    `${requested}; update redelivery set state = 'done', seen_all = true`,
  ],
  [
    'a redelivery that is done before it saw all',
    'redelivery_done_saw_all',
    `${requested}; update redelivery set state = 'done', finished_at = now()`,
  ],
  [
    'a redelivery that ended early for no reason',
    'redelivery_ended_has_reason',
    `${requested}; update redelivery set state = 'ended', finished_at = now()`,
  ],
  [
    'a redelivery that ended early for an unknown reason',
    'redelivery_end_reason_known',
    `${requested}; update redelivery set state = 'ended', finished_at = now(), end_reason = 'tired'`,
  ],
  [
    'a cancelled redelivery without the person who cancelled it',
    'redelivery_cancelled_was_requested',
    `${requested}; update redelivery set state = 'cancelled', finished_at = now()`,
  ],
];
