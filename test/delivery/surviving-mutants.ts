/**
 * Mutants without which every scenario holds, by the reason. A text that ends with … is the beginning of several.
 */
export const survivors: Record<string, readonly string[]> = {
  'The id of an attempt is of one delivery. The rest of the key is for the index.': [
    'recordOutcomeSql: o.webhook_id = $2::uuid → true',
    'recordOutcomeSql: o.event_id = $3::uuid → true',
    'recordOutcomeSql: s.webhook_id = $2::uuid → true',
    'recordOutcomeSql: s.event_id = $3::uuid → true',
    'repairDeliveriesSql: a.webhook_id = f.webhook_id → true',
    'repairDeliveriesSql: a.event_id = f.event_id → true',
  ],
  'The attempt that holds a slot is the open one of its delivery.': [
    'repairDeliveriesSql: a.id = f.attempt_id → true',
    'repairDeliveriesSql: a.finished_at is null → true',
  ],
  'A row that exists keeps its number: this saves the lock of `next_attempt_number`.': [
    'recordOutcomeSql: coalesce((select o.number from delivery_attempt o …',
  ],
  'Ids of events are in the order of their creation.': [
    'unblockNextSql: b.created_at, →',
    'claim_deliveries: d.created_at, →…',
    'claim_deliveries: due.created_at, →…',
    'claim_deliveries: c.created_at, →',
  ],
  'An order decides which rows are in the limit, when there are more.': [
    'repairDeliveriesSql: s.until → s.until desc',
    'repairDeliveriesSql: d.due_at → d.due_at desc',
    'suspendWebhooksSql: r.failing_since → r.failing_since desc',
    'suspendWebhooksSql: r.failing_since, →',
  ],
  'A condition that repeats another for a partial index.': [
    'suspendWebhooksSql: (r.failing_since is not null or r.gone_at is not null) → true',
    'suspendWebhooksSql: r.gone_at is not null → false',
    'cancelDeletedSql: d.run >= 0 → true',
  ],
  'It saves work: a later part of the statement decides again, with the lock.': [
    'repairDeliveriesSql: s.until < statement_timestamp() → true',
    "unblockSql: d.state = 'blocked' → true",
    'claim_deliveries: least(r.webhook_free, r.organization_free, r.host_free) → least(r.webhook_free, …',
    'admit_attempt: r.retry_after_until > statement_timestamp() → true',
    "admit_attempt: r.retry_after_until < statement_timestamp() + interval '1 hour 10 seconds' → true",
    'admit_attempt: not found → true',
  ],
  'It locks more rows, which delays others and changes nothing.': [
    'next_attempt_number: s.webhook_id = webhook → true',
    'next_attempt_number: s.event_id = event → true',
    'claim_deliveries: r.webhook_id = c.webhook_id → true',
  ],
  'The row would have to change after the statement has begun and before it locks the row.': [
    "claim_deliveries: d.state = 'queued' → true (2)",
    "unblockSql: d.state = 'blocked' → true (2)",
  ],
  'The lock skips a row that the statement itself has changed, too.': [
    'unblockNextSql: b.event_id <> s.event_id → true',
  ],
  'Pages of more than `blockedPerPage` rows are in repair.test.ts.': [
    'unblockSql: - 1 →',
    'unblockSql: d.webhook_id → d.webhook_id desc',
    'unblockSql: g.webhook_id → g.webhook_id desc',
    'unblockSql: g.is_waiting → true',
    'unblockSql: g.is_waiting → false',
  ],
  'Chance: without it, deliveries are in an order that nothing determines, or retries have no jitter.': [
    'claim_deliveries: , random() →',
    'repairDeliveriesSql: * (1 + 0.1 * random()) →',
    'repairDeliveriesSql: + 0.1 * random() →',
    'repairDeliveriesSql: * random() →',
  ],
  'It decides whether a row is written that does not change.': [
    'recordOutcomeSql: (t.lacks_sequence or r.concurrency <> case when …',
    "recordOutcomeSql: $4::text = 'delivered' → false (2)",
  ],
  'A bound that no test reaches.': [
    'recordOutcomeSql: least(r.exhausted_in_row + (select count(*) from is_exhausted e where e.is_first), 1000) → (r.…',
  ],
  'How far ahead a time may be before it is from a clock that was set back; the scenario sets it back by an hour.': [
    "admit_attempt: greatest(interval '11 minutes', make_interval(…",
    'admit_attempt: * waits[least(found_delivery.failures, cardinality(waits))] →',
    'admit_attempt: least(found_delivery.failures, cardinality(waits)) → …',
    'admit_attempt: found_slot.run is null → true',
  ],
  'It needs a failover that lost a claim, and another rare change at once; no scenario makes both.': [
    'recordOutcomeSql: t.lacks_sequence → false',
    "recordOutcomeSql: 'blocked', →",
  ],
  'A 2xx that is recorded has a branch before, and one that is repeated has no slot.': [
    "recordOutcomeSql: not $4::text = 'delivered' → true (3)",
  ],
  'No scenario shows it yet.': [
    'admit_attempt: , due_at = case when has_slot then clock_timestamp() else d.due_at end →',
    'admit_attempt: has_slot → true (2)',
    'admit_attempt: has_slot → false (2)',
    "admit_attempt: coalesce((select array_agg(v.id) from valid v), '{}') → ((select array_agg(v.id) from valid v))",
    'admit_attempt: d.webhook_id = webhook → true…',
    'admit_attempt: a.webhook_id = webhook → true',
    'admit_attempt: a.event_id = event → true',
    'admit_attempt: , v.created_at desc →',
  ],
  'What is settled already holds nothing back.': ['repairDeliveriesSql: f.is_current → true'],
};
