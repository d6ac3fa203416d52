import { sql } from 'kysely';
import { type EventType, eventTypes } from '#domain/contract/events.ts';
import type { Transaction } from '#domain/db/database.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import type { OpenStack } from './stack.ts';

/** The name of the families that `npm start` and `listen` create, so that no imported family changes. */
const familyName = 'Example family (development)';

/**
 * Causes events by real changes, in one transaction with the rights of the platform's login: the
 * database creates the events.
 *
 * Each event's precondition is created first: a client before one ends, a client without a seat
 * before a seat is assigned. Returns the types that it caused, in order.
 *
 * @throws InvalidSettingsError when the organization has no active member who could be the
 * professional.
 */
export async function causeEvent(
  { database, organization }: Pick<OpenStack, 'database' | 'organization'>,
  type: EventType,
): Promise<EventType[]> {
  const caused = await database.change(async (tx) => {
    await tx.query(sql`set local role org_api_platform`);
    return causes[type](tx, organization.id);
  });
  return caused.sort((a, b) => eventTypes.indexOf(a) - eventTypes.indexOf(b));
}

const causes: Record<EventType, (tx: Transaction, organizationId: string) => Promise<EventType[]>> = {
  async 'client.started'(tx, organizationId) {
    await startClient(tx, organizationId);
    return ['client.started'];
  },

  async 'client.ended'(tx, organizationId) {
    const found = await findGrant(tx, organizationId);
    const grantId = found?.id ?? (await startClient(tx, organizationId));
    await tx.query(sql`
      update client_grant set status = 'ended', end_reason = 'ended', ends_at = greatest(since, now())
      where organization_id = ${organizationId} and id = ${grantId}`);
    return found === null ? ['client.started', 'client.ended'] : ['client.ended'];
  },

  async 'seat.given'(tx, organizationId) {
    const found = await findGrant(tx, organizationId);
    const grantId = found?.id ?? (await startClient(tx, organizationId));
    await assignSeat(tx, organizationId, grantId);
    return found === null ? ['client.started', 'seat.given'] : ['seat.given'];
  },

  async 'seat.ended'(tx, organizationId) {
    const before = (await findSeat(tx, organizationId)) === null ? await causes['seat.given'](tx, organizationId) : [];
    const seatId = await findSeat(tx, organizationId);
    await tx.query(sql`
      update seat set ended_at = now(), end_reason = 'ended_by_organization'
      where organization_id = ${organizationId} and id = ${seatId}`);
    return [...before, 'seat.ended'];
  },
};

async function startClient(tx: Transaction, organizationId: string): Promise<string> {
  const [member] = await tx.query(sql<{ id: string }>`
    select m.person_id as id from membership m where m.organization_id = ${organizationId} and m.status = 'active'
    order by m.person_id limit 1`);
  if (member === undefined)
    throw new InvalidSettingsError([
      'the organization has no active member who could be given access; choose another with --org',
    ]);
  const [grant] = await tx.query(sql<{ id: string }>`
    with made as (
      insert into family (organization_id, id, name)
      values (${organizationId}, gen_random_uuid(), ${familyName}) returning organization_id, id
    )
    insert into client_grant (organization_id, kind, professional_id, family_id, since)
    select m.organization_id, 'attorney', ${member.id}, m.id, now() from made m returning id`);
  return String(grant?.id);
}

/** Returns an active client without a seat, or null when there is none. */
async function findGrant(tx: Transaction, organizationId: string): Promise<{ id: string } | null> {
  const [grant] = await tx.query(sql<{ id: string }>`
    select g.id from client_grant g join family f on f.organization_id = g.organization_id and f.id = g.family_id
    where g.organization_id = ${organizationId} and f.name = ${familyName} and g.status = 'active'
      and (g.ends_at is null or g.ends_at > now()) and not exists (
        select from seat s where s.organization_id = g.organization_id and s.family_id = g.family_id
          and s.ended_at is null)
    order by g.since, g.id limit 1 for update of g`);
  return grant ?? null;
}

async function findSeat(tx: Transaction, organizationId: string): Promise<string | null> {
  const [seat] = await tx.query(sql<{ id: string }>`
    select s.id from seat s join family f on f.organization_id = s.organization_id and f.id = s.family_id
    where s.organization_id = ${organizationId} and f.name = ${familyName} and s.ended_at is null
    order by s.given_at, s.id limit 1`);
  return seat?.id ?? null;
}

/** Assigns a seat. An organization without a free seat gets one more first. */
async function assignSeat(tx: Transaction, organizationId: string, grantId: string): Promise<void> {
  await tx.query(sql`
    update seat_plan p set invoiced = p.invoiced + 1
    where p.organization_id = ${organizationId} and (
      select count(*) from seat s where s.organization_id = p.organization_id and s.ended_at is null
    ) >= p.invoiced + coalesce((
      select sum(b.quantity) from subscription b
      where b.organization_id = p.organization_id and b.status in ('active', 'trialing', 'past_due')), 0)`);
  await tx.query(sql`
    insert into seat (organization_id, grant_id, family_id)
    select g.organization_id, g.id, g.family_id from client_grant g
    where g.organization_id = ${organizationId} and g.id = ${grantId}`);
}
