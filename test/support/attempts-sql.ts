/** Attempts of many deliveries, each value as SQL over a row of `from`. */
interface Attempts {
  /** A table or a query in parentheses with its alias. */
  from: string;
  organization?: string;
  webhook?: string;
  event?: string;
  /** The event's id by default: each delivery gets one attempt. */
  id?: string;
  number?: string;
  endsSchedule?: string;
  startedAt?: string;
  finishedAt?: string;
  status?: string;
  cause?: string;
  /** The kept part of the receiver's response (bytea). */
  response?: string;
}

/**
 * Returns the statement that inserts attempts for rows that other statements have made.
 * `make.attempt` inserts a single one.
 */
export function attemptsSql(attempts: Attempts): string {
  const { from, organization = '$1::uuid', webhook = '$2::uuid', event = 'id', startedAt = 'at' } = attempts;
  const { id = event, number = '1', endsSchedule = 'false', finishedAt = startedAt, response = 'null' } = attempts;
  const { status = '204', cause = `case when ${status} < 300 then 'accepted' else 'status' end` } = attempts;
  return `insert into delivery_attempt (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
      signed_with, started_at, finished_at, status, cause, response)
    select ${organization}, ${webhook}, ${event}, ${id}, ${number}, 1, ${endsSchedule}, '{}',
      ${startedAt}, ${finishedAt}, ${status}, ${cause}, ${response} from ${from}`;
}
