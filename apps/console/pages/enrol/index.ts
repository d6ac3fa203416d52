import { factorRoutes } from './factor.ts';
import { linkRoutes } from './link.ts';

export const routes = [...linkRoutes, ...factorRoutes];
