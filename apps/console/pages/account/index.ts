import { person } from '../../web/route.ts';
import { factorRoutes } from './factors.ts';
import { accountPage } from './page.ts';
import { passwordRoutes } from './password.ts';
import { recoveryRoutes } from './recovery-codes.ts';
import { sessionRoutes } from './sessions.ts';

export const routes = [
  person.view({ name: 'showAccount', path: '/account', show: (visit) => accountPage(visit) }),
  ...sessionRoutes,
  ...passwordRoutes,
  ...factorRoutes,
  ...recoveryRoutes,
];
