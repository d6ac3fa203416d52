import { z } from 'zod';
import { assignRole, unassignRole } from '#domain/members/change.ts';
import { html } from '#runtime/pages/html.ts';
import { displayName, truncate } from '../../components/text.ts';
import { NotFoundError, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { impactFormPage } from './impact.ts';
import { memberPage } from './member.ts';
import { memberPath, readPersonId } from './path.ts';

/** Assigns roles to members and removes them. */
export const memberRoleRoutes = [
  member.action({
    name: 'assignRole',
    path: '/members/person/:personId/roles',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ roleId: z.guid('Choose a role.') }),
    async act(visit, { roleId }) {
      const personId = readPersonId(visit);
      await assignRole(visit.console.database, { ...visit.request, personId, roleId });
      return redirect(memberPath(visit, personId), { flash: 'Role assigned.' });
    },
    rerender: memberPage,
  }),

  ...impactFormPage({
    pageName: 'showRemoveRole',
    name: 'unassignRole',
    path: '/members/person/:personId/roles/:roleId/remove',
    permission: 'org.members.manage',
    buildChange: ({ params }) => ({ kind: 'unassign', roleId: params.roleId ?? '' }),
    confirm(visit, { name, roles }) {
      const role = roles.find(({ id }) => id === visit.params.roleId);
      if (role === undefined) throw new NotFoundError();
      return {
        title: `Remove role ${truncate(role.name, 60)}?`,
        button: `Remove role ${truncate(role.name, 60)}`,
        consequence: html`${displayName(name)} loses role ${displayName(role.name)}
          immediately${roles.length === 1 ? ' and then has no permissions' : ''}.`,
      };
    },
    async act(visit, personId) {
      const { roleId = '' } = visit.params;
      await unassignRole(visit.console.database, { ...visit.request, personId, roleId });
      // Members who remove their own role may no longer open the members page.
      const next = personId === visit.by.personId ? visit.at('') : memberPath(visit, personId);
      return redirect(next, { flash: 'Role removed.' });
    },
  }),
];
