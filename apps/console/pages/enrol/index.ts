import { factorRoutes } from './factor.ts';
import { linkRoutes } from './link.ts';
import { passwordRoutes } from './password.ts';

export const routes = [...linkRoutes, ...passwordRoutes, ...factorRoutes];
