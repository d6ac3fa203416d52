import type { Route } from '../../web/route.ts';
import { attemptRoutes } from './attempt.ts';
import { cancelRoutes } from './cancel.ts';
import { deliveryRoutes } from './delivery.ts';
import { listRoutes } from './list.ts';
import { redeliverRoutes } from './redeliver.ts';
import { redeliveryRoutes } from './redelivery.ts';

/** The pages of what a webhook sends: deliveries, their attempts, and sending again. */
export const routes: readonly Route[] = [
  ...listRoutes,
  ...deliveryRoutes,
  ...attemptRoutes,
  ...cancelRoutes,
  ...redeliverRoutes,
  ...redeliveryRoutes,
];
