import { defineEntity, p, sql } from '@mikro-orm/core';

/**
 * Client families, the grants that make them clients, and their seats: one entity per table of
 * migration 0003.
 */
export const Family = defineEntity({
  name: 'Family',
  tableName: 'family',
  properties: { organizationId: p.uuid().primary(), id: p.uuid().primary(), name: p.text() },
});

const ClientGrantSchema = defineEntity({
  name: 'ClientGrant',
  tableName: 'client_grant',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    kind: p.text().$type<'attorney' | 'neutral'>(),
    professionalId: p.text(),
    familyId: p.uuid(),
    since: p.datetime(),
    endsAt: p.datetime().strictNullable(),
    status: p.text().$type<'active' | 'ended'>(),
    endReason: p.text().$type<'ended' | 'moved'>().strictNullable(),
  },
});

/**
 * Access that a family gave to one professional. `endsAt` may lie ahead of an active grant;
 * `endReason` is null until it ended.
 */
export class ClientGrant extends ClientGrantSchema.class {
  /** Returns whether access is active at `now`, also before maintenance has written its end. */
  isActiveAt(now: Date): boolean {
    return this.status === 'active' && (this.endsAt === null || this.endsAt > now);
  }

  /** Ends the access at the time of the database. Its seat ends by a trigger. */
  end(reason: 'ended' | 'moved'): void {
    this.status = 'ended';
    this.endReason = reason;
    this.endsAt = sql<Date>`greatest(since, clock_timestamp())`;
  }
}
ClientGrantSchema.setClass(ClientGrant);

/**
 * Places that are invoiced, and the price of one in minor units (`priceCurrency` and `priceCents`
 * both null: none shown).
 */
export const SeatPlan = defineEntity({
  name: 'SeatPlan',
  tableName: 'seat_plan',
  properties: {
    organizationId: p.uuid().primary(),
    invoiced: p.integer(),
    priceCurrency: p.text().strictNullable(),
    priceCents: p.integer().strictNullable(),
  },
});

/**
 * Places that are paid for; `status` is one of Stripe's words, `renewsAt` null when it does not
 * renew.
 */
export const Subscription = defineEntity({
  name: 'Subscription',
  tableName: 'subscription',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    status: p.text(),
    quantity: p.integer(),
    renewsAt: p.datetime().strictNullable(),
    cancelAtPeriodEnd: p.boolean(),
  },
});

const SeatSchema = defineEntity({
  name: 'Seat',
  tableName: 'seat',
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

/** A seat assigned to a client family; held while `endedAt` is null. */
export class Seat extends SeatSchema.class {
  /** Ends a held seat for the organization at the time of the database; false when it has ended. */
  end(): boolean {
    if (this.endedAt !== null) return false;
    this.endedAt = sql<Date>`greatest(given_at, clock_timestamp())`;
    this.endReason = 'ended_by_organization';
    return true;
  }
}
SeatSchema.setClass(Seat);

/** Counts of one family on one UTC day, the raw material of outcomes. */
export const FamilyDay = defineEntity({
  name: 'FamilyDay',
  tableName: 'family_day',
  properties: {
    organizationId: p.uuid().primary(),
    familyId: p.uuid().primary(),
    day: p.date().primary(),
    messages: p.integer(),
    calmMessages: p.integer(),
    exchanges: p.integer(),
    exchangesOnTime: p.integer(),
    expensesDue: p.integer(),
    expensesAnsweredIn14Days: p.integer().name('expenses_answered_in_14_days'),
  },
});
