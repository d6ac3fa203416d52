import { randomUUIDv7 } from 'node:crypto';
import { getActor } from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { OrganizationError } from '../access/errors.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { findDatabaseTime } from '../db/statement.ts';
import { beginDueGrant } from './begin-due-grant.ts';
import { ClientGrant, Seat } from './client.entity.ts';

/**
 * Assigning and ending seats; both require `org.seats.manage`. What an assignment needs (a free
 * seat, active access, a family without another seat) are constraints of the database, which hold
 * under concurrency; this file maps them to errors. Triggers write the events.
 */

/**
 * Assigns a seat to the family of an active grant and returns the seat's id.
 *
 * @throws OrganizationError `no_free_seat`, `family_has_seat`, `grant_not_active`,
 * `no_such_grant` and others.
 */
export async function assignSeat(
  database: Database,
  { organizationId, grantId, by }: { organizationId: string; grantId: string; by: Authority },
): Promise<{ id: string }> {
  const id = randomUUIDv7();
  try {
    await database.change(async (tx) => {
      await getActor(tx, organizationId, by, 'org.seats.manage');
      await beginDueGrant(tx, organizationId, grantId);
      const grant = await tx.findOne(ClientGrant, { organizationId, id: grantId });
      if (grant === null) throw noSuchGrant();
      if (grant.status !== 'active') throw grantNotActive(grant.status, 'A seat needs active access.');
      const { familyId } = grant;
      const givenAt = await findDatabaseTime(tx);
      tx.create(Seat, { organizationId, id, grantId, familyId, givenAt, endedAt: null, endReason: null });
      await tx.flush();
      await recordAuditEntry(tx, { organizationId, by, action: 'seat.give', detail: { seatId: id, grantId } });
    });
  } catch (error) {
    throw findRejection(error) ?? error;
  }
  return { id };
}

/**
 * Ends an assigned seat (`ended_by_organization`), which is free at once.
 *
 * @throws OrganizationError `no_such_seat`, `seat_ended` and others.
 */
export async function endSeat(
  database: Database,
  { organizationId, seatId, by }: { organizationId: string; seatId: string; by: Authority },
): Promise<void> {
  await database.change(async (tx) => {
    await getActor(tx, organizationId, by, 'org.seats.manage');
    const seat = await tx.findOne(Seat, { organizationId, id: seatId }, writeLock);
    if (seat === null) throw new OrganizationError('no_such_seat', 'The organization has no such seat.');
    if (!seat.end()) throw new OrganizationError('seat_ended', 'This seat has already ended.');
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, action: 'seat.end', detail: { seatId, grantId: seat.grantId } });
  });
}

const whyNotActive = {
  scheduled: 'This access has not begun.',
  ended: 'This access has already ended.',
  withdrawn: 'This access was withdrawn before it began.',
} as const;

export const grantNotActive = (status: keyof typeof whyNotActive, more = ''): OrganizationError =>
  new OrganizationError('grant_not_active', `${whyNotActive[status]} ${more}`.trim());

export const noSuchGrant = () => new OrganizationError('no_such_grant', 'The organization has no such client access.');

function findRejection(error: unknown): OrganizationError | null {
  switch (brokenConstraint(error)) {
    case 'seat_within_plan':
    case 'seat_plan_of_seat':
      return new OrganizationError('no_free_seat', 'All seats are assigned. End one, or buy more seats.');
    case 'seat_one_per_family':
      return new OrganizationError('family_has_seat', 'This client already has a seat.');
    case 'seat_needs_active_grant':
      return grantNotActive('ended', 'A seat needs active access.');
    default:
      return null;
  }
}
