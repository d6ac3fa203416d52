import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type ChangeType, changeTypes } from '#domain/contract/events.ts';
import type { Transaction } from '#domain/db/database.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import type { OpenStack } from './stack.ts';

/** The name of the families that `npm start` and `listen` create, so that no imported family changes. */
const familyName = 'Example family (development)';

/**
 * Causes events by real changes, in one transaction of calls that the platform could make: the database
 * creates the events.
 *
 * Each event's precondition is created first: a client before one ends, a client without a seat
 * before a seat is assigned. Returns the types that it caused, in order.
 *
 * @throws InvalidSettingsError when the organization has no active member who could be the
 * professional.
 */
export async function causeEvent(
  { database, organization }: Pick<OpenStack, 'database' | 'organization'>,
  type: ChangeType,
): Promise<ChangeType[]> {
  const caused = await database.change(async (tx) => {
    await tx.query(sql`set local role org_api_platform`);
    return causes[type](tx, organization.id);
  });
  return caused.sort((a, b) => changeTypes.indexOf(a) - changeTypes.indexOf(b));
}

const causes: Record<ChangeType, (tx: Transaction, organizationId: string) => Promise<ChangeType[]>> = {
  async 'client.started'(tx, organizationId) {
    await startClient(tx, organizationId);
    return ['client.started'];
  },

  async 'client.ended'(tx, organizationId) {
    const found = await findGrant(tx, organizationId);
    const grantId = found?.id ?? (await startClient(tx, organizationId));
    await tx.query(sql`select platform.end_grant(organization => ${organizationId}, id => ${grantId})`);
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
      select platform.end_seat(organization => ${organizationId}, id => ${seatId}, reason => 'ended_by_organization')`);
    return [...before, 'seat.ended'];
  },
};

async function startClient(tx: Transaction, organizationId: string): Promise<string> {
  const [member] = await tx.query(sql<{ id: string }>`
    select m.member as id from platform.member m where m.organization = ${organizationId} and m.status = 'active'
    order by m.member limit 1`);
  if (member === undefined)
    throw new InvalidSettingsError([
      'the organization has no active member who could be given access; choose another with --org',
    ]);
  const familyId = randomUUID();
  const grantId = randomUUID();
  await tx.query(sql`
    select platform.put_family(organization => ${organizationId}, id => ${familyId}, name => ${familyName})`);
  await tx.query(sql`
    select platform.start_grant(organization => ${organizationId}, id => ${grantId}, kind => 'attorney',
      professional => ${member.id}, family => ${familyId})`);
  return grantId;
}

/** Returns an active client without a seat, or null when there is none. */
async function findGrant(tx: Transaction, organizationId: string): Promise<{ id: string } | null> {
  const [grant] = await tx.query(sql<{ id: string }>`
    select g.id from platform.client_grant g
      join platform.family f on f.organization = g.organization and f.id = g.family
    where g.organization = ${organizationId} and f.name = ${familyName} and g.status = 'active'
      and (g.ends_at is null or g.ends_at > now()) and not exists (
        select from platform.seat s join platform.client_grant other
          on other.organization = s.organization and other.id = s.grant_id
        where s.organization = g.organization and other.family = g.family and s.ended_at is null)
    order by g.since, g.id limit 1`);
  return grant ?? null;
}

async function findSeat(tx: Transaction, organizationId: string): Promise<string | null> {
  const [seat] = await tx.query(sql<{ id: string }>`
    select s.id from platform.seat s
      join platform.client_grant g on g.organization = s.organization and g.id = s.grant_id
      join platform.family f on f.organization = g.organization and f.id = g.family
    where s.organization = ${organizationId} and f.name = ${familyName} and s.ended_at is null
    order by s.given_at, s.id limit 1`);
  return seat?.id ?? null;
}

/** Assigns a seat. An organization without a free seat gets one more first. */
async function assignSeat(tx: Transaction, organizationId: string, grantId: string): Promise<void> {
  await tx.query(sql`
    select platform.put_plan(organization => p.organization, invoiced => p.invoiced + 1,
      price_currency => p.price_currency, price_cents => p.price_cents)
    from platform.plan p
    where p.organization = ${organizationId} and (
      select count(*) from platform.seat s where s.organization = p.organization and s.ended_at is null
    ) >= p.invoiced + coalesce((
      select sum(b.quantity) from platform.subscription b
      where b.organization = p.organization and b.status in ('active', 'trialing', 'past_due')), 0)`);
  await tx.query(sql`
    select platform.give_seat(organization => ${organizationId}, id => ${randomUUID()}, grant_id => ${grantId})`);
}
