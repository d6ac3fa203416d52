import { secondFactorRoutes } from './second-factor.ts';
import { signInRoutes } from './sign-in.ts';

export const routes = [...signInRoutes, ...secondFactorRoutes];
