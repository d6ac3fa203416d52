import type { Route } from '../../web/route.ts';
import { createRoutes } from './create.ts';
import { editRoutes } from './edit.ts';
import { keyRoutes } from './key.ts';
import { listRoutes } from './list.ts';
import { compromisedRoutes } from './report-leaked.ts';
import { revokeRoutes } from './revoke.ts';
import { rotateRoutes } from './rotate.ts';

export const routes: readonly Route[] = [
  ...listRoutes,
  ...createRoutes,
  ...compromisedRoutes,
  ...keyRoutes,
  ...editRoutes,
  ...rotateRoutes,
  ...revokeRoutes,
];
