import { z } from 'zod';
import { deleteRole } from '#domain/organization/roles.ts';
import { redirect } from '../../web/answer.ts';
import { member } from '../../web/route.ts';
import { rolePage } from './role.ts';

/** Deleting an own role that nobody holds. */
export const deleteRoutes = [
  member.action({
    name: 'deleteRole',
    path: '/members/roles/:roleId/delete',
    permission: 'org.roles.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { organizationId } = visit.organization;
      await deleteRole(visit.console.em, { organizationId, roleId: visit.params.roleId ?? '', by: visit.by });
      return redirect(visit.at('/members/roles'), { flash: 'The role is deleted.' });
    },
    redraw: rolePage,
  }),
];
