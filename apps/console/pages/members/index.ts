import type { Route } from '../../web/route.ts';
import { changeRoutes } from './change.ts';
import { inviteRoutes } from './invite.ts';
import { linkRoutes } from './link.ts';
import { listRoutes } from './list.ts';
import { memberRoutes } from './member.ts';
import { memberRoleRoutes } from './member-roles.ts';
import { removeRoutes } from './remove.ts';
import { suspendRoutes } from './suspend.ts';

export const routes: readonly Route[] = [
  ...listRoutes,
  ...inviteRoutes,
  ...memberRoutes,
  ...changeRoutes,
  ...linkRoutes,
  ...memberRoleRoutes,
  ...suspendRoutes,
  ...removeRoutes,
];
