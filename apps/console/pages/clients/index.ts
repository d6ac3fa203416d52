import type { Route } from '../../web/route.ts';
import { clientRoutes } from './client.ts';
import { endRoutes } from './end.ts';
import { endSeatRoutes } from './end-seat.ts';
import { giveSeatRoutes } from './give-seat.ts';
import { moveRoutes } from './move.ts';
import { rosterRoutes } from './roster.ts';
import { seatsRoutes } from './seats.ts';

/**
 * The pages of clients and seats: the roster, one access, its end and its move; seats held, given
 * and ended.
 */
export const routes: readonly Route[] = [
  ...rosterRoutes,
  ...clientRoutes,
  ...endRoutes,
  ...moveRoutes,
  ...seatsRoutes,
  ...giveSeatRoutes,
  ...endSeatRoutes,
];
