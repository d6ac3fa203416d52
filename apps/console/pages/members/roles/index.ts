import type { Route } from '../../../web/route.ts';
import { changeRoutes } from './change.ts';
import { createRoutes } from './create.ts';
import { deleteRoutes } from './delete.ts';
import { listRoutes } from './list.ts';
import { roleRoutes } from './role.ts';

export const routes: readonly Route[] = [
  ...listRoutes,
  ...createRoutes,
  ...roleRoutes,
  ...changeRoutes,
  ...deleteRoutes,
];
