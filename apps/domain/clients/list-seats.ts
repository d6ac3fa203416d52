import { sql } from 'kysely';
import { OrganizationError } from '../access/errors.ts';
import type { Queryable } from '../db/database.ts';
import { buildPage, type ListPage } from '../db/list-page.ts';
import { withDates } from '../db/statement.ts';

/** The seats of an organization. `free` is never below 0, also when a subscription ended. */
export interface SeatCounts {
  total: number;
  used: number;
  free: number;
  /** Of current subscriptions. */
  paid: number;
  /** Agreed beside subscriptions, by invoice. */
  invoiced: number;
}

export async function getSeatCounts(db: Queryable, organizationId: string): Promise<SeatCounts> {
  const rows = await db.query(sql<{ paid: number; invoiced: number; used: number }>`
    select
      (select coalesce(sum(s.quantity), 0)::int from subscription s where s.organization_id = ${organizationId}
        and s.status in ('active', 'trialing', 'past_due')) as paid,
      coalesce((select p.invoiced from seat_plan p where p.organization_id = ${organizationId}), 0) as invoiced,
      (select count(*)::int from seat s where s.organization_id = ${organizationId} and s.ended_at is null) as used`);
  const { paid = 0, invoiced = 0, used = 0 } = rows[0] ?? {};
  return { paid, invoiced, used, total: paid + invoiced, free: Math.max(0, paid + invoiced - used) };
}

/** A seat with its client access. */
export interface SeatRow {
  seatId: string;
  grantId: string;
  kind: 'attorney' | 'neutral';
  family: string;
  professional: string;
  givenAt: Date;
  /** Null while it is assigned. */
  endedAt: Date | null;
  endReason: 'ended_by_organization' | 'access_ended' | 'subscription_ended' | null;
}

/**
 * Lists one page of the seats that are assigned (last assigned first) or ended (last ended first).
 *
 * @param after - the id of the last seat of the previous page; null for the first page.
 */
export async function listSeats(
  db: Queryable,
  organizationId: string,
  state: 'assigned' | 'ended',
  after: string | null,
  pageSize: number,
): Promise<ListPage<SeatRow>> {
  const moment = sql.ref(state === 'assigned' ? 's.given_at' : 's.ended_at');
  const cursorMoment = sql.ref(state === 'assigned' ? 'c.given_at' : 'c.ended_at');
  const beyond =
    after === null
      ? sql``
      : sql`and (${moment}, s.id) < (select ${cursorMoment}, c.id from seat c
        where c.organization_id = ${organizationId} and c.id = ${after})`;
  const rows = await db.query(sql<SeatRow>`
    select ${columns} ${source}
    where s.organization_id = ${organizationId}
      and ${state === 'assigned' ? sql`s.ended_at is null` : sql`s.ended_at is not null`} ${beyond}
    order by ${moment} desc, s.id desc limit ${sql.lit(pageSize + 1)}`);
  return buildPage(rows.map(parseSeat), pageSize, ({ seatId }) => seatId);
}

/** The most seats of one access that are listed. */
const seatsOfGrantListed = 50;

/** Lists the seats that one access has and had, last assigned first. */
export async function listSeatsOfGrant(db: Queryable, organizationId: string, grantId: string): Promise<SeatRow[]> {
  const rows = await db.query(sql<SeatRow>`
    select ${columns} ${source}
    where s.organization_id = ${organizationId} and s.grant_id = ${grantId}
    order by s.given_at desc, s.id desc limit ${sql.lit(seatsOfGrantListed)}`);
  return rows.map(parseSeat);
}

/**
 * Returns one seat.
 *
 * @throws OrganizationError `no_such_seat`
 */
export async function getSeat(db: Queryable, organizationId: string, seatId: string): Promise<SeatRow> {
  const [seat] = await db.query(sql<SeatRow>`
    select ${columns} ${source} where s.organization_id = ${organizationId} and s.id = ${seatId}`);
  if (seat === undefined) throw new OrganizationError('no_such_seat', 'The organization has no such seat.');
  return parseSeat(seat);
}

const columns = sql`
  s.id as "seatId", s.grant_id as "grantId", g.kind, f.name as family, m.name as professional,
    s.given_at as "givenAt", s.ended_at as "endedAt",
  s.end_reason as "endReason"`;

const source = sql`
  from seat s
  join client_grant g on g.organization_id = s.organization_id and g.id = s.grant_id
  join family f on f.organization_id = s.organization_id and f.id = s.family_id
  join membership m on m.organization_id = s.organization_id and m.person_id = g.professional_id`;

const parseSeat = (row: SeatRow): SeatRow => withDates(row, 'givenAt', 'endedAt');
