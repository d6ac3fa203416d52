import { randomUUIDv7 } from 'node:crypto';
import { getActor } from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { OrganizationError } from '../access/errors.ts';
import { Membership } from '../access/membership.entity.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database, Transaction } from '../db/database.ts';
import { shareLock, writeLock } from '../db/locks.ts';
import { findDatabaseTime } from '../db/statement.ts';
import { beginDueGrant } from './begin-due-grant.ts';
import { ClientGrant } from './client.entity.ts';
import { grantNotActive, noSuchGrant } from './seats.ts';

/**
 * Ending a family's access to a professional, and moving it to a colleague. Both require
 * `org.seats.manage`: both end the seat that the access carries, and the roles that may end a
 * family's seat (owner, administrator, billing) already decide whether the family is served.
 * `org.members.manage` would let the role that keeps the staff list do it. Triggers write the
 * events and end the seat with its access (`access_ended`).
 */

interface GrantRequest {
  organizationId: string;
  grantId: string;
  by: Authority;
}

/**
 * Ends active access now (reason `ended`) and returns `ended`. Access that has not begun is withdrawn, without
 * an event: `withdrawn`.
 *
 * @throws OrganizationError `no_such_grant`, `grant_not_active` and others.
 */
export async function endGrant(database: Database, input: GrantRequest): Promise<'ended' | 'withdrawn'> {
  const { organizationId, grantId, by } = input;
  return database.change(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    const grant = await getOpenGrant(tx, input);
    const result = grant.status === 'scheduled' ? 'withdrawn' : 'ended';
    grant.end('ended');
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, action: 'grant.end', detail: { grantId } });
    return result;
  });
}

/**
 * Moves active access to another active member and returns the id of the new access: the old one
 * ends with reason `moved`, and one of the same kind, family and planned end begins, in one
 * transaction. A seat ends with the old access; `assignSeat` gives the new one another. Access that has
 * not begun is withdrawn, and the new one begins at its time.
 *
 * @throws OrganizationError `no_such_grant`, `grant_not_active`, `no_such_member`,
 * `same_professional` and others.
 */
export async function moveGrant(
  database: Database,
  input: GrantRequest & { toPersonId: string },
): Promise<{ id: string }> {
  const { organizationId, grantId, by, toPersonId } = input;
  return database.change(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    const grant = await getOpenGrant(tx, input);
    const { kind, familyId, endsAt, professionalId, status } = grant;
    const begins = status === 'scheduled' ? grant.since : null;
    grant.end('moved');
    await tx.flush(); // before the member is locked: an import locks access before members too
    await assertActiveMember(tx, organizationId, toPersonId);
    if (professionalId === toPersonId)
      throw new OrganizationError('same_professional', 'This member already has this access.');
    const id = randomUUIDv7();
    tx.create(ClientGrant, {
      organizationId,
      id,
      kind,
      professionalId: toPersonId,
      familyId,
      since: begins ?? (await findDatabaseTime(tx)),
      endsAt,
      status: begins === null ? 'active' : 'scheduled',
      endReason: null,
    });
    await tx.flush();
    const detail = { grantId, newGrantId: id, from: professionalId, to: toPersonId };
    await recordAuditEntry(tx, { organizationId, by, action: 'grant.move', detail });
    return { id };
  });
}

/**
 * Returns the access, locked: active, or scheduled when its time has not come. Access whose planned end has
 * passed counts as ended.
 */
async function getOpenGrant(tx: Transaction, { organizationId, grantId }: GrantRequest): Promise<ClientGrant> {
  await beginDueGrant(tx, organizationId, grantId);
  const grant = await tx.findOne(ClientGrant, { organizationId, id: grantId }, writeLock);
  if (grant === null) throw noSuchGrant();
  const { status } = grant;
  if (status === 'scheduled' || grant.isActiveAt(await findDatabaseTime(tx))) return grant;
  throw grantNotActive(status === 'withdrawn' ? status : 'ended');
}

/** Locks the member's row, so that they cannot be suspended before the access has begun. */
async function assertActiveMember(tx: Transaction, organizationId: string, personId: string): Promise<void> {
  const member = await tx.findOne(Membership, { organizationId, personId }, shareLock);
  if (member?.status === 'active') return;
  throw new OrganizationError('no_such_member', 'The organization has no such active member.');
}
