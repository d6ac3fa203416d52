import type { Route } from '../../web/route.ts';
import { csvRoutes } from './csv.ts';
import { entryRoutes } from './entry.ts';
import { evidenceRoutes } from './evidence.ts';
import { listRoutes } from './list.ts';

/** The routes of the audit log: its list, one entry, the CSV file, and the evidence package. */
export const routes: readonly Route[] = [...listRoutes, ...csvRoutes, ...evidenceRoutes, ...entryRoutes];
