import type { Route } from '../../web/route.ts';
import { compromisedRoutes } from './compromised.ts';
import { createRoutes } from './create.ts';
import { keyRoutes } from './key.ts';
import { listRoutes } from './list.ts';
import { revokeRoutes } from './revoke.ts';
import { rotateRoutes } from './rotate.ts';

/** The pages of API keys: seen, made, rotated, revoked, and found when one got out. */
export const routes: readonly Route[] = [
  ...listRoutes,
  ...createRoutes,
  ...compromisedRoutes,
  ...keyRoutes,
  ...rotateRoutes,
  ...revokeRoutes,
];
