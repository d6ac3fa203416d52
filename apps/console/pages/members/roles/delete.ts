import { z } from 'zod';
import { deleteRole } from '#domain/members/roles.ts';
import { redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import { rolePage } from './role.ts';

/** Deletes a custom role that no member has. */
export const deleteRoutes = [
  member.action({
    name: 'deleteRole',
    path: '/members/roles/:roleId/delete',
    permission: 'org.roles.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      await deleteRole(visit.console.database, { ...visit.request, roleId: visit.params.roleId ?? '' });
      return redirect(visit.at('/members/roles'), { flash: 'Role deleted.' });
    },
    rerender: rolePage,
  }),
];
