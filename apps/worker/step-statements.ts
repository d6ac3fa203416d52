/** How long a worker that ends or hangs in a step of maintenance keeps the others from it, in seconds. */
const stepClaimSeconds = 60;

/** Adds the rows of the steps `$1` (names) that have none. */
export const addStepsSql = /* sql */ `
  insert into maintenance_step (name) select unnest($1::text[]) on conflict do nothing`;

/** A step that a worker has claimed. `until` is by PostgreSQL's clock, with microseconds. */
export interface ClaimedStep {
  name: string;
  until: string;
}

/**
 * Claims the step of `$1` (names) that has been due for longest, for a minute: no other worker
 * claims it until then, or until `finishStepSql`. A step whose time was set in what is now the future
 * is due: the clock was set back. Returns a `ClaimedStep`, or no row.
 */
export const claimStepSql = /* sql */ `
  update maintenance_step s set due_at = clock_timestamp() + interval '${stepClaimSeconds} seconds',
    set_at = clock_timestamp()
  where s.name = (
    select n.name from maintenance_step n
    where n.name = any ($1::text[]) and (n.due_at <= clock_timestamp() or n.set_at > clock_timestamp())
    order by n.due_at limit 1 for no key update skip locked)
  returning s.name, s.due_at::text as until`;

/**
 * Finishes the step `$1`, claimed until `$2`: it is due again in `$3` seconds. `$4`: what it found
 * (json), or null. Changes nothing when the worker was too late.
 */
export const finishStepSql = /* sql */ `
  update maintenance_step s set due_at = clock_timestamp() + make_interval(secs => $3::double precision),
    set_at = clock_timestamp(), reading = coalesce($4::json, s.reading),
    read_at = case when $4::json is null then s.read_at else clock_timestamp() end
  where s.name = $1 and s.due_at = $2::timestamptz`;

/** Reads what the step `$1` found last: `{reading, readAtMs}` (Unix time), or no row before the first time. */
export const readStepSql = /* sql */ `
  select s.reading, (extract(epoch from s.read_at) * 1000)::double precision as "readAtMs"
  from maintenance_step s where s.name = $1 and s.read_at is not null`;
