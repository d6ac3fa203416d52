import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import { contains } from '../db/fold.ts';
import { buildPage, type ListPage } from '../db/list-page.ts';
import { joinConditions, withDates } from '../db/statement.ts';
import { isActiveGrant, isEndedGrant, isScheduledGrant } from './grant-conditions.ts';
import { noSuchGrant } from './seats.ts';

/** A family's access to a professional as the roster shows it: names and dates only. */
export interface ClientRow {
  grantId: string;
  kind: 'attorney' | 'neutral';
  family: string;
  professionalId: string;
  professional: string;
  since: Date;
  /** When it ends or ended; null: no end is planned. */
  endsAt: Date | null;
  /** As of now, also before the maintenance loop has written a begin or an end. */
  status: 'scheduled' | 'active' | 'ended' | 'withdrawn';
  /** Null until the end is stored. */
  endReason: 'ended' | 'moved' | null;
  /** The seat that this access carries now; null: none. */
  seatId: string | null;
}

/** Selects access. An empty `text` and null match everything. No list has what was withdrawn. */
export interface ClientFilter {
  state: 'scheduled' | 'active' | 'ended' | 'all';
  /** Part of a family's or a professional's name. */
  text: string;
  professionalId: string | null;
}

/**
 * Lists one page of the roster, newest access first; of ended access, the one that ended last.
 *
 * @param after - the id of the last access of the previous page; null for the first page.
 */
export async function listClients(
  db: Queryable,
  organizationId: string,
  filter: ClientFilter,
  after: string | null,
  pageSize: number,
): Promise<ListPage<ClientRow>> {
  const { state, text, professionalId } = filter;
  const orderedBy = state === 'ended' ? 'ends_at' : 'since';
  return selectPage(db, { organizationId, text, after, pageSize, orderedBy }, [
    conditions[state],
    professionalId && sql`g.professional_id = ${professionalId}`,
  ]);
}

/** Lists one page of the active access whose family has no seat, ordered as `listClients`. */
export async function listEligibleClients(
  db: Queryable,
  organizationId: string,
  text: string,
  after: string | null,
  pageSize: number,
): Promise<ListPage<ClientRow>> {
  const hasNoSeat = sql`not exists (select from seat h where h.organization_id = g.organization_id
    and h.family_id = g.family_id and h.ended_at is null)`;
  return selectPage(db, { organizationId, text, after, pageSize, orderedBy: 'since' }, [isActiveGrant, hasNoSeat]);
}

async function selectPage(
  db: Queryable,
  page: {
    organizationId: string;
    text: string;
    after: string | null;
    pageSize: number;
    orderedBy: 'since' | 'ends_at';
  },
  more: Parameters<typeof joinConditions>[0],
): Promise<ListPage<ClientRow>> {
  const { organizationId, text, after, pageSize, orderedBy } = page;
  const [time, timeBefore] = [sql.ref(`g.${orderedBy}`), sql.ref(`c.${orderedBy}`)];
  const conditions = [
    sql`g.organization_id = ${organizationId}`,
    ...more,
    text.trim() && sql`(${contains('f.name', text)} or ${contains('m.name', text)})`,
    after &&
      sql`(${time}, g.id) < (select ${timeBefore}, c.id from client_grant c where c.organization_id = ${organizationId}
        and c.id = ${after})`,
  ];
  const rows = await db.query(sql<ClientRow>`
    select ${columns} ${source}
    where ${joinConditions(conditions)}
    order by ${time} desc, g.id desc limit ${sql.lit(pageSize + 1)}`);
  return buildPage(
    rows.map((row) => withDates(row, 'since', 'endsAt')),
    pageSize,
    ({ grantId }) => grantId,
  );
}

export interface ClientDetails extends ClientRow {
  /** Whether the family has a seat through other access. */
  hasSeatElsewhere: boolean;
}

/**
 * Returns one access.
 *
 * @throws OrganizationError `no_such_grant`
 */
export async function getClient(db: Queryable, organizationId: string, grantId: string): Promise<ClientDetails> {
  const [client] = await db.query(sql<ClientDetails>`
    select ${columns},
      exists (select from seat h where h.organization_id = g.organization_id and h.family_id = g.family_id
        and h.grant_id <> g.id and h.ended_at is null) as "hasSeatElsewhere"
    ${source}
    where g.organization_id = ${organizationId} and g.id = ${grantId}`);
  if (client === undefined) throw noSuchGrant();
  return withDates(client, 'since', 'endsAt');
}

const conditions = {
  scheduled: isScheduledGrant,
  active: isActiveGrant,
  // The index of ended access has no other row.
  ended: sql`${isEndedGrant} and g.ends_at is not null`,
  all: sql`g.status <> 'withdrawn'`,
} as const;

const columns = sql`
  g.id as "grantId", g.kind, f.name as family, g.professional_id as "professionalId", m.name as professional, g.since,
    g.ends_at as "endsAt", g.end_reason as "endReason",
  case when ${isEndedGrant} then 'ended' when ${isActiveGrant} then 'active' else g.status end as status,
  (select s.id from seat s where s.organization_id = g.organization_id and s.grant_id = g.id and s.ended_at is null
    limit 1) as "seatId"`;

const source = sql`
  from client_grant g
  join family f on f.organization_id = g.organization_id and f.id = g.family_id
  join membership m on m.organization_id = g.organization_id and m.person_id = g.professional_id`;
