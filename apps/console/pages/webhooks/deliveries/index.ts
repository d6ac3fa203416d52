import type { Route } from '../../../web/route.ts';
import { attemptRoutes } from './attempt.ts';
import { cancelRoutes } from './cancel.ts';
import { deliveryRoutes } from './delivery.ts';
import { listRoutes } from './list.ts';
import { redeliverRoutes } from './redeliver.ts';
import { redeliverReviewRoutes } from './redeliver-review.ts';
import { redeliverSelectedRoutes } from './redeliver-selected.ts';
import { redeliveryRoutes } from './redelivery.ts';

export const routes: readonly Route[] = [
  ...listRoutes,
  ...deliveryRoutes,
  ...attemptRoutes,
  ...cancelRoutes,
  ...redeliverRoutes,
  ...redeliverReviewRoutes,
  ...redeliverSelectedRoutes,
  ...redeliveryRoutes,
];
