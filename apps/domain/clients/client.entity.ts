import { defineEntity, p, sql } from '@mikro-orm/core';

const ClientGrantSchema = defineEntity({
  name: 'ClientGrant',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    kind: p.text().$type<'attorney' | 'neutral'>(),
    professionalId: p.text(),
    familyId: p.uuid(),
    since: p.datetime(),
    endsAt: p.datetime().strictNullable(),
    status: p.text().$type<'scheduled' | 'active' | 'ended' | 'withdrawn'>(),
    endReason: p.text().$type<'ended' | 'moved'>().strictNullable(),
  },
});

/**
 * Access that a family gave to one professional. `endsAt` may be in the future while active. Before it
 * begins it is `scheduled`; `withdrawn` never began.
 */
export class ClientGrant extends ClientGrantSchema.class {
  /** Returns whether access is active at `now`, also before maintenance has ended it. */
  isActiveAt(now: Date): boolean {
    return this.status === 'active' && (this.endsAt === null || this.endsAt > now);
  }

  /** Ends the access at the time of the database. Its seat ends by a trigger. What has not begun is withdrawn. */
  end(reason: 'ended' | 'moved'): void {
    if (this.status === 'scheduled') {
      this.status = 'withdrawn';
      return;
    }
    this.status = 'ended';
    this.endReason = reason;
    this.endsAt = sql<Date>`greatest(since, clock_timestamp())`;
  }
}
ClientGrantSchema.setClass(ClientGrant);

const SeatSchema = defineEntity({
  name: 'Seat',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    grantId: p.uuid(),
    familyId: p.uuid(),
    givenAt: p.datetime(),
    endedAt: p.datetime().strictNullable(),
    endReason: p.text().$type<'ended_by_organization' | 'access_ended' | 'subscription_ended'>().strictNullable(),
  },
});

/** A seat of a client family; assigned while `endedAt` is null. */
export class Seat extends SeatSchema.class {
  /** Ends an assigned seat at the time of the database. Returns false when it has ended. */
  end(): boolean {
    if (this.endedAt !== null) return false;
    this.endedAt = sql<Date>`greatest(given_at, clock_timestamp())`;
    this.endReason = 'ended_by_organization';
    return true;
  }
}
SeatSchema.setClass(Seat);
