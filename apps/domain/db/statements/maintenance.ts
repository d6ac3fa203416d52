/** How long a worker that ends or hangs in a step of maintenance keeps the others from it, in seconds. */
export const stepHeldSeconds = 60;

/** Adds the rows of the steps `$1` (names) that have none. */
export const addStepsSql = /* sql */ `
  insert into maintenance_step (name) select unnest($1::text[]) on conflict do nothing`;

/** A step that a worker has taken. `until` is by PostgreSQL's clock, with microseconds. */
export interface TakenStep {
  name: string;
  until: string;
}

/**
 * Takes the step of `$1` (names) that has been due for longest, for a minute: no other worker takes it until
 * then, or until `finishStepSql`. Returns a `TakenStep`, or no row.
 */
export const takeStepSql = /* sql */ `
  update maintenance_step s set due_at = clock_timestamp() + interval '${stepHeldSeconds} seconds'
  where s.name = (
    select n.name from maintenance_step n where n.name = any ($1::text[]) and n.due_at <= clock_timestamp()
    order by n.due_at limit 1 for no key update skip locked)
  returning s.name, s.due_at::text as until`;

/**
 * Finishes the step `$1`, taken until `$2`: it is due again in `$3` seconds. `$4`: what it found
 * (json), or null. Changes nothing when the worker was too late.
 */
export const finishStepSql = /* sql */ `
  update maintenance_step s set due_at = clock_timestamp() + make_interval(secs => $3::double precision),
    reading = coalesce($4::json, s.reading),
    read_at = case when $4::json is null then s.read_at else clock_timestamp() end
  where s.name = $1 and s.due_at = $2::timestamptz`;

/** Reads what the step `$1` found last: `{reading, readAtMs}` (Unix time), or no row before the first time. */
export const readStepSql = /* sql */ `
  select s.reading, (extract(epoch from s.read_at) * 1000)::double precision as "readAtMs"
  from maintenance_step s where s.name = $1 and s.read_at is not null`;

/**
 * Ends access whose end has passed, at most 500 grants a statement, so that a backlog never locks
 * many rows; a row that another writer changes waits for the next second. A trigger ends the
 * grant's seat. Returns a row per grant.
 */
export const endDueGrantsSql = /* sql */ `
  update client_grant g set status = 'ended', end_reason = 'ended'
  from (
    select organization_id, id from client_grant
    where status = 'active' and ends_at <= now()
    order by ends_at, id
    limit 500
    for update skip locked
  ) due
  where g.organization_id = due.organization_id and g.id = due.id
  returning g.id`;

/** Creates the log's partitions three months ahead; one row, `{made}`. */
export const keepPartitionsSql = /* sql */ `select keep_activity_partitions() as made`;

/** Drops partitions of the activity log older than `$1` days; one row, `{dropped}`: months. */
export const dropOldActivitySql = /* sql */ `select drop_old_activity($1) as dropped`;

/**
 * Purges deliveries that were settled more than `$1` days ago, with their attempts, and events of
 * that age without deliveries, at most `$2` of each; one row, `{deliveries, events}`. Open and
 * parked deliveries stay, and so do those that the ledger has not found correct; its sums do not
 * change.
 *
 * @throws an error of PostgreSQL with fewer than 31 days.
 */
export const purgeDeliveriesSql = /* sql */ `
  select f.deliveries, f.events from purge_deliveries($1, $2) f`;

/**
 * Deletes expired data of sign-ins: sessions past their end or idle (with their challenges), links,
 * challenges, known browsers, and attempts that no longer count. None of them can be used again;
 * deleting them limits personal data to what is needed. Hourly is enough.
 */
export const purgeExpiredSignInsSql = /* sql */ `select purge_expired_sign_ins()`;

/** Bytes of the log's default partition, one row, `{bytes}`: 0 while each month has its own. */
export const activityStateSql = /* sql */ `
  select pg_relation_size('public.activity_default')::float8 as "defaultPartitionBytes",
    activity_unlinked_age() as "unlinkedAgeSeconds"`;

export interface ActivityState {
  defaultPartitionBytes: number;
  /** Age of the oldest row without a link, seconds; 0 when every row has one. */
  unlinkedAgeSeconds: number;
}

/** How long the activity log is kept, one row, `{days}`; null before the worker applied it. */
export const activityRetentionSql = /* sql */ `select f.applied_days as days from retention_floor f`;

/** How many days settled deliveries are kept, as last applied; null before the first purge. */
export const deliveryRetentionSql = /* sql */ `
  select f.applied_delivery_days as days from retention_floor f`;

/** Adds about `$1` committed rows of the log to the sums of calls; one row, `{isAllDone}`. */
export const sumCallsSql = /* sql */ `select s.is_all_done as "isAllDone" from sum_calls($1) s`;

/** Erases secrets that are not valid any more. */
export const purgeExpiredSecretsSql = /* sql */ `select purge_expired_secrets()`;
