import { getMemberDetails, type MemberDetails } from '#domain/organization/list-members.ts';
import { truncate } from '../../components/display-name.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { memberStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { noSignIn, statusMeaning } from './cells.ts';
import { isOwner } from './grantable.ts';
import { keysSection } from './keys-section.ts';
import { membershipSection } from './membership-section.ts';
import { clientsPath, memberPath, personIdOf } from './path.ts';
import { rolesSection } from './roles-section.ts';

/** Shows one member: details, roles, API keys and membership. */
export const memberRoutes = [
  member.view({
    name: 'showMember',
    path: '/members/person/:personId',
    permission: 'org.members.read',
    show: (visit) => memberPage(visit, freshForm()),
  }),
];

/** Draws the page. `state` is that of a refused form; its problem is shown on top. */
export async function memberPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const shown = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const mayChange = visit.may('org.members.manage') && (!shown.isOwner || isOwner(visit)) && shown.status !== 'left';
  return page({
    title: truncate(shown.name, 80),
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${
        visit.may('org.members.manage') && shown.isOwner && !isOwner(visit)
          ? notice('info', 'This member is an owner. Only owners can edit owners.')
          : nothing
      }
      ${detailsSection(visit, shown)}
      ${
        mayChange
          ? html`<p class="actions">${linkButton(
              memberPath(visit, shown.personId, '/change'),
              'Edit member',
              'secondary',
            )}</p>`
          : nothing
      }
      ${await rolesSection(visit, shown, mayChange, state)}
      ${visit.may('org.members.manage') || visit.may('org.keys.manage') ? await keysSection(visit, shown) : nothing}
      ${membershipSection(visit, shown, mayChange)}`,
  });
}

function detailsSection(visit: MemberVisit, shown: MemberDetails): Html {
  const { name, email, title, status, lastSeenAt, activeGrants, personId } = shown;
  const clients = activeGrants.toLocaleString('en');
  const roster = clientsPath(visit, personId);
  return detailList([
    name.length > 80 && ['Name', html`<bdi>${name}</bdi>`],
    ['Email', html`<bdi>${email}</bdi>`],
    title !== null && ['Title', html`<bdi>${title}</bdi>`],
    ['Status', html`${memberStatus(status)} <span class="quiet">${statusMeaning[status]}</span>`],
    ['Last sign-in', relativeTime(lastSeenAt, noSignIn(shown))],
    ['Active clients', roster === null ? clients : html`<a href="${roster}">${clients}</a>`],
  ]);
}
