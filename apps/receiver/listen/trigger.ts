import type { PoolClient } from 'pg';
import { type EventType, eventTypes } from '#domain/contract/events.ts';
import { SettingsRefused } from '#runtime/errors.ts';
import type { OpenStack } from './stack.ts';

/** The name of the families that this tool creates, so that it never changes imported families. */
const familyName = 'Example family (npm run tool -- listen)';

/**
 * Causes events by real changes, in one transaction with the rights of the platform's login: the
 * database creates the events.
 *
 * Each event's precondition is created first: a client before one ends, a client without a seat
 * before a seat is assigned. Returns the types that it caused, in order.
 *
 * @throws SettingsRefused when the organization has no active member who could be the professional.
 */
export async function causeEvent({ database, organization }: OpenStack, type: EventType): Promise<EventType[]> {
  const client = await database.pool.connect();
  try {
    await client.query('begin; set local role org_api_platform');
    const caused = await causes[type](client, organization.id);
    await client.query('commit');
    return caused.sort((a, b) => eventTypes.indexOf(a) - eventTypes.indexOf(b));
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

const causes: Record<EventType, (client: PoolClient, organizationId: string) => Promise<EventType[]>> = {
  async 'client.started'(client, organizationId) {
    await startClient(client, organizationId);
    return ['client.started'];
  },

  async 'client.ended'(client, organizationId) {
    const found = await findGrant(client, organizationId);
    const grantId = found?.id ?? (await startClient(client, organizationId));
    await client.query(
      `update client_grant set status = 'ended', end_reason = 'ended', ends_at = greatest(since, now())
        where organization_id = $1 and id = $2`,
      [organizationId, grantId],
    );
    return found === null ? ['client.started', 'client.ended'] : ['client.ended'];
  },

  async 'seat.given'(client, organizationId) {
    const found = await findGrant(client, organizationId);
    const grantId = found?.id ?? (await startClient(client, organizationId));
    await assignSeat(client, organizationId, grantId);
    return found === null ? ['client.started', 'seat.given'] : ['seat.given'];
  },

  async 'seat.ended'(client, organizationId) {
    const before =
      (await findSeat(client, organizationId)) === null ? await causes['seat.given'](client, organizationId) : [];
    await client.query(
      `update seat set ended_at = now(), end_reason = 'ended_by_organization' where organization_id = $1 and id = $2`,
      [organizationId, await findSeat(client, organizationId)],
    );
    return [...before, 'seat.ended'];
  },
};

async function startClient(client: PoolClient, organizationId: string): Promise<string> {
  const { rows: members } = await client.query<{ id: string }>(
    `select m.person_id as id from membership m where m.organization_id = $1 and m.status = 'active'
      order by m.person_id limit 1`,
    [organizationId],
  );
  if (members[0] === undefined)
    throw new SettingsRefused([
      'the organization has no active member who could be given access; choose another with --org',
    ]);
  const { rows: families } = await client.query<{ id: string }>(
    'insert into family (organization_id, id, name) values ($1, gen_random_uuid(), $2) returning id',
    [organizationId, familyName],
  );
  const { rows } = await client.query<{ id: string }>(
    `insert into client_grant (organization_id, kind, professional_id, family_id, since)
      values ($1, 'attorney', $2, $3, now()) returning id`,
    [organizationId, members[0].id, families[0]?.id],
  );
  return String(rows[0]?.id);
}

/** Returns an active client without a seat, or null when there is none. */
async function findGrant(client: PoolClient, organizationId: string): Promise<{ id: string } | null> {
  const { rows } = await client.query<{ id: string }>(
    `select g.id from client_grant g join family f on f.organization_id = g.organization_id and f.id = g.family_id
     where g.organization_id = $1 and f.name = $2 and g.status = 'active' and (g.ends_at is null or g.ends_at > now())
       and not exists (select from seat s where s.organization_id = g.organization_id and s.family_id = g.family_id
       and s.ended_at is null)
     order by g.since, g.id limit 1 for update of g`,
    [organizationId, familyName],
  );
  return rows[0] ?? null;
}

async function findSeat(client: PoolClient, organizationId: string): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    `select s.id from seat s join family f on f.organization_id = s.organization_id and f.id = s.family_id
     where s.organization_id = $1 and f.name = $2 and s.ended_at is null order by s.given_at, s.id limit 1`,
    [organizationId, familyName],
  );
  return rows[0]?.id ?? null;
}

/** Assigns a seat. An organization without a free seat gets one more first. */
async function assignSeat(client: PoolClient, organizationId: string, grantId: string): Promise<void> {
  await client.query(
    `update seat_plan p set invoiced = p.invoiced + 1
     where p.organization_id = $1 and (select count(*) from seat s
       where s.organization_id = $1 and s.ended_at is null) >= p.invoiced
       + coalesce((select sum(b.quantity) from subscription b
         where b.organization_id = $1 and b.status in ('active', 'trialing', 'past_due')), 0)`,
    [organizationId],
  );
  await client.query(
    `insert into seat (organization_id, grant_id, family_id) select g.organization_id, g.id, g.family_id
      from client_grant g
     where g.organization_id = $1 and g.id = $2`,
    [organizationId, grantId],
  );
}
