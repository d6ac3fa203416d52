import { SeatCounts } from '#domain/contract/resources.ts';
import { seatCountsSql } from '#domain/db/statements/seats.ts';
import { endpoint } from '../endpoint.ts';

/** Seat counts and subscriptions. */
export const getOrgSeats = endpoint({
  operationId: 'getOrgSeats',
  resource: '/seats',
  scope: 'org.billing.manage',
  summary: 'Seat counts and subscriptions',
  description: 'How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.',
  response: SeatCounts,
  body: seatCountsSql,
});
