import { removeMember } from '#domain/members/change.ts';
import { getMemberDetails } from '#domain/members/list-members.ts';
import { html } from '#runtime/pages/html.ts';
import { displayName, truncate } from '../../components/text.ts';
import { redirect } from '../../web/response.ts';
import { affectedClients, impactFormPage } from './impact.ts';
import { clientsPath } from './path.ts';

const buildChange = () => ({ kind: 'remove' }) as const;
const hasLeft = 'You have left the organization.';

/** Removes a member, or lets a member leave, which needs no permission. */
export const removeRoutes = [
  ...impactFormPage({
    pageName: 'showRemove',
    name: 'removeMember',
    path: '/members/person/:personId/remove',
    permission: 'org.members.manage',
    buildChange,
    confirm: (visit, { name, personId }, impact) => ({
      title: `Remove ${truncate(name, 80)}?`,
      button: `Remove ${truncate(name, 60)}`,
      consequence: html`${displayName(name)} loses access and all roles immediately. You can invite them again later.`,
      clients: affectedClients(impact, clientsPath(visit, personId)),
    }),
    async act(visit, personId) {
      const { database, now } = visit.console;
      const { name } = await getMemberDetails(database, visit.organizationId, personId, now());
      await removeMember(database, { ...visit.request, personId });
      return personId === visit.by.personId
        ? redirect('/', { flash: hasLeft })
        : redirect(visit.at('/members'), { flash: `${truncate(name, 80)} was removed.` });
    },
  }),

  ...impactFormPage({
    pageName: 'showLeave',
    name: 'leaveOrganization',
    path: '/leave',
    buildChange,
    getPersonId: ({ by }) => by.personId,
    confirm(visit, _details, impact) {
      const { organizationName } = visit.organization;
      return {
        title: `Leave ${truncate(organizationName, 60)}?`,
        button: `Leave ${truncate(organizationName, 60)}`,
        consequence: html`You lose access to ${displayName(organizationName)} and all roles immediately. To return, you
          need a new invitation.`,
        clients: affectedClients(impact, null, 'you'),
        breadcrumbs: [],
        cancel: visit.at(''),
      };
    },
    async act(visit, personId) {
      await removeMember(visit.console.database, { ...visit.request, personId });
      return redirect('/', { flash: hasLeft });
    },
  }),
];
