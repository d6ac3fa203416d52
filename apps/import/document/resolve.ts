import { type Client, escapeLiteral } from 'pg';
import { formats } from './format.ts';

/** How the dates of one document are shifted and compared. */
export interface DocumentClock {
  /** The time of the import. Access that ends before it has ended. */
  now: Date;
  /** The whole days by which every date moves; negative when `asOf` is in the future. */
  shiftDays: number;
  /** The day that the document describes, before the shift. */
  asOf: string;
}

/**
 * Creates the table of problems, and the `staged_*` relations that checks and merges read: staged objects with the
 * organization's id and shifted dates, and beside each grant and seat its row in the database.
 *
 * `staged_grant.clock_ended`: the file shows access as active, but its end has passed. Such a grant
 * and its seat, once ended in the database, are not changed (`left_alone`), so that the same file
 * can be imported again later. A new seat on such a grant is created as ended at that end.
 *
 * `staged_erased`: families of the file that were erased. Their grants and seats are not matched with rows of the
 * database, which have another family since.
 *
 * `staged_grant.status`: access that has not begun is `scheduled`, or `withdrawn` when the file ends it.
 * `stored_status` is by the clock: access whose time has come is `active` before the worker has written
 * it, too.
 */
export async function resolveStaged(client: Client, clock: DocumentClock): Promise<void> {
  await client.query('create temp table import_problem (path text, problem text) on commit drop');
  for (const { table } of Object.values(formats)) await client.query(`analyze ${table}`);
  await client.query(`
    create temp table staged_erased on commit drop as
      select id from (select id from import_family union select family_id from import_grant
        union select family_id from import_family_day) f
      where is_family_erased(id)`);
  // Hours, because the length of a PostgreSQL day depends on the session's time zone.
  const shift = `interval '${clock.shiftDays * 24} hours'`;
  const now = `${escapeLiteral(clock.now.toISOString())}::timestamptz`;
  const views: [name: string, table: string, columns: string][] = [
    ['staged_role', 'import_role', 'id, key, name, description, permissions'],
    ['staged_member', 'import_member', 'user_id, name, email, title, status, role_keys'],
    ['staged_family', 'import_family', 'id, name'],
    [
      'staged_subscription',
      'import_subscription',
      `id, status, quantity, renews_at + ${shift} as renews_at, cancel_at_period_end`,
    ],
    ['staged_referral_code', 'import_referral_code', 'id, code, link, label, active'],
    ['staged_referral_invoice', 'import_referral_invoice', 'id, month, currency, share_cents'],
    [
      'staged_family_day',
      'import_family_day',
      `family_id, day + ${clock.shiftDays} as day, messages, calm_messages, exchanges, exchanges_on_time, ` +
        'expenses_due, expenses_answered_in_14_days',
    ],
  ];
  await client.query(`
    create temp view staged_organization as
      select position, id, name, slug, kind, status, created_at + ${shift} as created_at, has_family_days
        from import_organization`);
  for (const [name, table, columns] of views) {
    await client.query(`
      create temp view ${name} as
        select o.id as organization_id, r.organization, r.position, ${columns
          .split(', ')
          .map((column) => `r.${column}`)
          .join(', ')}
        from import_organization o join ${table} r on r.organization = o.position`);
  }
  await client.query(`
    create temp view staged_seat_plan as
      select o.id as organization_id, r.organization, r.invoiced, r.price ->> 'currency' as price_currency,
        (r.price ->> 'cents')::integer as price_cents
      from import_organization o join import_seat_plan r on r.organization = o.position`);
  await client.query(`
    create temp view staged_referral as
      select o.id as organization_id, r.organization, r.code_position, r.position, r.id, c.id as code_id, r.state
      from import_organization o
      join import_referral r on r.organization = o.position
      join import_referral_code c on c.organization = r.organization and c.position = r.code_position`);
  await client.query(grantSql(shift, now));
  await client.query(`analyze staged_grant`);
  await client.query(seatSql(shift, now));
  await client.query(`analyze staged_seat`);
}

const statusByClock = (grant: string, now: string) =>
  `case when ${grant}.status = 'scheduled' and ${grant}.since <= ${now} then 'active' else ${grant}.status end`;

function grantSql(shift: string, now: string): string {
  return `
    create temp table staged_grant on commit drop as
      select o.id as organization_id, g.organization, g.position, g.id, g.kind, g.professional_id, g.family_id,
        g.since + ${shift} as since, g.ends_at + ${shift} as ends_at,
        case when y.status = 'ended' then g.end_reason end as end_reason, y.status, x.lies_ahead,
        coalesce(g.end_reason is null and g.ends_at + ${shift} <= ${now}, false) as clock_ended,
        x.stored_status, e.family_id as stored_family_id,
        coalesce(x.stored_status in ('ended', 'withdrawn') and g.end_reason is null and g.ends_at + ${shift} <= ${now}
          or x.stored_status = 'withdrawn' and y.status = 'withdrawn', false) as left_alone,
        row_number() over (partition by g.id order by g.organization, g.position) > 1 as repeated,
        z.id is not null as family_erased
      from import_organization o
      join import_grant g on g.organization = o.position
      left join staged_erased z on z.id = g.family_id
      left join client_grant e on e.organization_id = o.id and e.id = g.id and z.id is null
      cross join lateral (
        -- The minute is that of the trigger that schedules what other writers insert.
        select coalesce(g.since + ${shift} > ${now} + interval '1 minute', false) as lies_ahead,
          ${statusByClock('e', now)} as stored_status) x
      cross join lateral (
        select case
          when x.lies_ahead and coalesce(x.stored_status, 'scheduled') = 'scheduled'
            then case when g.end_reason is null then 'scheduled' else 'withdrawn' end
          when g.end_reason is null then 'active'
          when x.stored_status = 'withdrawn' then 'withdrawn'
          else 'ended' end as status) y`;
}

function seatSql(shift: string, now: string): string {
  return `
    create temp table staged_seat on commit drop as
      select s.organization_id, s.organization, s.position, s.id, s.grant_id, s.family_id, s.given_at,
        s.grant_found, s.grant_status,
        s.assigned_in_file, s.stored_grant_id, s.stored, s.stored_ended_at,
        s.assigned_in_file and s.grant_clock_ended and s.stored as left_alone,
        case when s.assigned_in_file and s.grant_clock_ended then greatest(s.given_at, s.grant_ends_at)
          else s.ended_at end as ended_at,
        case when s.assigned_in_file and s.grant_clock_ended then 'access_ended' else s.end_reason end as end_reason,
        s.assigned_in_file and s.grant_status = 'active' and not s.family_erased
          and case when s.grant_clock_ended then s.stored and s.stored_ended_at is null else true end as assigned_after
      from (
        select o.id as organization_id, r.organization, r.position, r.id, r.grant_id, r.given_at + ${shift} as
          given_at, r.ended_at + ${shift} as ended_at,
          r.end_reason, r.ended_at is null and r.end_reason is null as assigned_in_file,
          coalesce(g.family_id, d.family_id) as family_id,
          g.position is not null or d.id is not null as grant_found,
          coalesce(g.status, ${statusByClock('d', now)}, 'active') as grant_status,
          coalesce(g.clock_ended, d.status in ('scheduled', 'active') and d.ends_at <= now(), false)
            as grant_clock_ended,
          coalesce(g.ends_at, d.ends_at) as grant_ends_at, coalesce(g.family_erased, false) as family_erased,
          e.id is not null as stored, e.grant_id as stored_grant_id, e.ended_at as stored_ended_at
        from import_organization o
        join import_seat r on r.organization = o.position
        left join staged_grant g on g.organization = r.organization and g.id = r.grant_id and not g.repeated
        left join client_grant d on d.organization_id = o.id and d.id = r.grant_id
        left join seat e on e.organization_id = o.id and e.id = r.id and g.family_erased is not true
      ) as s`;
}

/** The relations above, which are granted to the role that merges. */
export const stagedRelations: readonly string[] = Object.values(formats).map(({ table }) =>
  table.replace('import_', 'staged_'),
);
