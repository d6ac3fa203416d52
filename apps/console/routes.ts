import { routes as account } from './pages/account/index.ts';
import { routes as audit_entry } from './pages/audit-log/index.ts';
import { routes as clients } from './pages/clients/index.ts';
import { routes as enrol } from './pages/enrol/index.ts';
import { routes as home } from './pages/home/index.ts';
import { routes as keys } from './pages/keys/index.ts';
import { routes as members } from './pages/members/index.ts';
import { routes as roles } from './pages/members/roles/index.ts';
import { routes as notifications } from './pages/notifications/index.ts';
import { routes as overview } from './pages/overview/index.ts';
import { routes as provider } from './pages/provider/index.ts';
import { routes as settings } from './pages/settings/index.ts';
import { routes as signIn } from './pages/sign-in/index.ts';
import { routes as usage } from './pages/usage/index.ts';
import { routes as deliveries } from './pages/webhooks/deliveries/index.ts';
import { routes as webhooks } from './pages/webhooks/index.ts';
import type { Route } from './web/route.ts';

/** The routes of each section of the console: one router each. */
export const sections = {
  home,
  signIn,
  enrol,
  account,
  overview,
  keys,
  webhooks,
  deliveries,
  members,
  roles,
  provider,
  clients,
  usage,
  audit_entry,
  settings,
  notifications,
} satisfies Record<string, readonly Route[]>;

/** Every route of the console, for tests that walk over them. */
export const routes: readonly Route[] = Object.values(sections).flat();
