import type { Route } from '../../web/route.ts';
import { csvRoutes } from './csv.ts';
import { lineRoutes } from './line.ts';
import { listRoutes } from './list.ts';

/** The pages of the activity log: lines by filter, one line, and a file of any filter. */
export const routes: readonly Route[] = [...listRoutes, ...csvRoutes, ...lineRoutes];
