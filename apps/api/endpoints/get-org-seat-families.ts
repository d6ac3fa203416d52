import { SeatFamilies } from '#domain/contract/resources.ts';
import { seatFamiliesSql } from '#domain/db/statements/seats.ts';
import { endpoint } from '../endpoint.ts';

/** Client families and seats. */
export const getOrgSeatFamilies = endpoint({
  operationId: 'getOrgSeatFamilies',
  resource: '/seats/families',
  scope: 'org.clients.read',
  summary: 'Client families and seats',
  description:
    'Which client families have a seat, which could have one and which had one; names only. The lists are complete.',
  response: SeatFamilies,
  body: seatFamiliesSql,
});
