import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { getActor } from '../access/actor.ts';
import { type Authority, askerOf } from '../access/authority.ts';
import { OrganizationRefused } from '../access/organization-refused.ts';
import { recordActivity } from '../activity/record.ts';
import { brokenConstraint } from '../db/constraint.ts';
import { runStatement, sql } from '../db/statement.ts';

/**
 * Giving seats and ending them; both ask for `org.seats.manage`. What makes a seat possible (a free
 * place, active access, a family without another seat) are constraints of the database, proven
 * there under concurrency (migration 0003): this translates their refusals. Events come from
 * triggers.
 */

/**
 * Gives a seat to the family of an active grant. Returns the seat's id. @throws OrganizationRefused
 * `no_free_place`, `family_holds_seat`, `grant_not_active`, `no_such_grant` and others
 */
export async function assignSeat(
  em: EntityManager,
  { organizationId, grantId, by }: { organizationId: string; grantId: string; by: Authority },
): Promise<{ id: string }> {
  const id = randomUUIDv7();
  try {
    await em.fork().transactional(async (tx) => {
      await getActor(tx, organizationId, by, 'org.seats.manage');
      const rows = await runStatement(
        tx,
        sql`
        insert into seat (organization_id, id, grant_id, family_id, given_at)
        select g.organization_id, ${id}, g.id, g.family_id, clock_timestamp() from client_grant g
        where g.organization_id = ${organizationId} and g.id = ${grantId} returning id`,
      );
      if (rows.length === 0) throw noSuchGrant();
      const detail = { seatId: id, grantId };
      await recordActivity(tx, { organizationId, ...askerOf(by), action: 'seat.give', detail });
    });
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
  return { id };
}

/**
 * Ends a held seat (`ended_by_organization`): its place is free at once. @throws
 * OrganizationRefused `no_such_seat`, `seat_ended` and others
 */
export async function endSeat(
  em: EntityManager,
  { organizationId, seatId, by }: { organizationId: string; seatId: string; by: Authority },
): Promise<void> {
  await em.fork().transactional(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    const [ended] = await runStatement<{ grantId: string }>(
      tx,
      sql`
      update seat set ended_at = greatest(given_at, clock_timestamp()), end_reason = 'ended_by_organization'
      where organization_id = ${organizationId} and id = ${seatId} and ended_at is null returning grant_id as "grantId"`,
    );
    if (ended === undefined) throw await whyNot(tx, organizationId, seatId);
    const detail = { seatId, grantId: ended.grantId };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'seat.end', detail });
  });
}

export const noSuchGrant = () =>
  new OrganizationRefused('no_such_grant', 'The organization has no such client access.');

async function whyNot(tx: EntityManager, organizationId: string, seatId: string): Promise<OrganizationRefused> {
  const rows = await runStatement(
    tx,
    sql`select id from seat where organization_id = ${organizationId} and id = ${seatId}`,
  );
  return rows.length === 0
    ? new OrganizationRefused('no_such_seat', 'The organization has no such seat.')
    : new OrganizationRefused('seat_ended', 'This seat has ended already.');
}

function refusalOf(error: unknown): OrganizationRefused | null {
  switch (brokenConstraint(error)) {
    case 'seat_needs_free_place':
    case 'seat_plan_of_seat':
      return new OrganizationRefused('no_free_place', 'Every seat is taken. End one, or get more seats.');
    case 'seat_one_per_family':
      return new OrganizationRefused('family_holds_seat', 'This family holds a seat already.');
    case 'seat_needs_active_grant':
      return new OrganizationRefused('grant_not_active', 'This access has ended; a seat needs one that is active.');
    default:
      return null;
  }
}
