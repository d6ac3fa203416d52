import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { findMember, getActor } from '../access/actor.ts';
import { type Authority, askerOf } from '../access/authority.ts';
import { OrganizationRefused } from '../access/organization-refused.ts';
import { recordActivity } from '../activity/record.ts';
import { runStatement, sql } from '../db/statement.ts';
import { noSuchGrant } from './seats.ts';

/**
 * Ending a family's access to a professional, and moving it to a colleague. Both ask for
 * `org.seats.manage`: there is no permission of clients' own, both end the seat that the access
 * carries, and who may end a family's seat (owner, administrator, billing) already decides whether
 * the family is served; `org.members.manage` would let whoever keeps the list of staff do it.
 * Events come from triggers, the seat ends with its access (`access_ended`).
 */

/** Which access, and who asks. */
export interface GrantRequest {
  organizationId: string;
  grantId: string;
  by: Authority;
}

interface Ended {
  kind: string;
  professionalId: string;
  familyId: string;
  endsAt: string | null;
}

/**
 * Ends active access now (reason `ended`). @throws OrganizationRefused `no_such_grant`,
 * `grant_not_active` and others
 */
export async function endGrant(em: EntityManager, input: GrantRequest): Promise<void> {
  const { organizationId, grantId, by } = input;
  await em.fork().transactional(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    await end(tx, input, 'ended');
    const detail = { grantId };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'grant.end', detail });
  });
}

/**
 * Moves active access to another active member: it ends with reason `moved`, and a new one of the
 * same kind, family and planned end begins, in one transaction. A seat ends with the old access;
 * `assignSeat` gives the new one another. Returns the new access's id.
 *
 * @throws OrganizationRefused `no_such_grant`, `grant_not_active`, `no_such_member`,
 * `same_professional` and others.
 */
export async function moveGrant(
  em: EntityManager,
  input: GrantRequest & { toPersonId: string },
): Promise<{ id: string }> {
  const { organizationId, grantId, by, toPersonId } = input;
  return em.fork().transactional(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    const ended = await end(tx, input, 'moved'); // first: an import locks access before members too
    await assertActiveMember(tx, organizationId, toPersonId);
    if (ended.professionalId === toPersonId)
      throw new OrganizationRefused('same_professional', 'This access is with that member already.');
    const id = randomUUIDv7();
    await runStatement(
      tx,
      sql`
      insert into client_grant (organization_id, id, kind, professional_id, family_id, since, ends_at)
      values (${organizationId}, ${id}, ${ended.kind}, ${toPersonId}, ${ended.familyId}, clock_timestamp(), ${ended.endsAt}::timestamptz)`,
    );
    const detail = { grantId, newGrantId: id, from: ended.professionalId, to: toPersonId };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'grant.move', detail });
    return { id };
  });
}

/**
 * Ends it and returns what it was. A moment that had passed when the maintenance loop was about to
 * write it is kept.
 */
async function end(
  tx: EntityManager,
  { organizationId, grantId }: GrantRequest,
  reason: 'ended' | 'moved',
): Promise<Ended> {
  const [grant] = await runStatement<Ended & { isActive: boolean }>(
    tx,
    sql`
    select kind, professional_id as "professionalId", family_id as "familyId", ends_at as "endsAt",
      status = 'active' and (ends_at is null or ends_at > clock_timestamp()) as "isActive"
    from client_grant where organization_id = ${organizationId} and id = ${grantId} for no key update`,
  );
  if (grant === undefined) throw noSuchGrant();
  if (!grant.isActive) throw new OrganizationRefused('grant_not_active', 'This access has ended already.');
  await runStatement(
    tx,
    sql`
    update client_grant set status = 'ended', end_reason = ${reason}, ends_at = greatest(since, clock_timestamp())
    where organization_id = ${organizationId} and id = ${grantId}`,
  );
  return grant;
}

/**
 * The member's row stays locked as it is, so that nobody suspends them before the access has begun.
 */
async function assertActiveMember(tx: EntityManager, organizationId: string, personId: string): Promise<void> {
  await runStatement(
    tx,
    sql`
    select from membership where organization_id = ${organizationId} and person_id = ${personId} for share`,
  );
  const member = await findMember(tx, organizationId, personId);
  if (member?.status === 'active') return;
  throw new OrganizationRefused('no_such_member', 'The organization has no such active member.');
}
