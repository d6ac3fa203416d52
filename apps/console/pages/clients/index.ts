import type { Route } from '../../web/route.ts';
import { assignSeatRoutes } from './assign-seat.ts';
import { clientRoutes } from './client.ts';
import { endRoutes } from './end.ts';
import { endSeatRoutes } from './end-seat.ts';
import { moveRoutes } from './move.ts';
import { receiptRoutes } from './receipt.ts';
import { rosterRoutes } from './roster.ts';
import { seatsRoutes } from './seats.ts';

export const routes: readonly Route[] = [
  ...rosterRoutes,
  ...clientRoutes,
  ...endRoutes,
  ...moveRoutes,
  ...receiptRoutes,
  ...seatsRoutes,
  ...assignSeatRoutes,
  ...endSeatRoutes,
];
