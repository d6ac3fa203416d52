import type { Route } from '../../web/route.ts';
import { csvRoutes } from './csv.ts';
import { entryRoutes } from './entry.ts';
import { listRoutes } from './list.ts';

/** The routes of the audit log: its list, one entry and the CSV file. */
export const routes: readonly Route[] = [...listRoutes, ...csvRoutes, ...entryRoutes];
