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
import { clientsPath, memberPath, personIdOf } from './path.ts';
import { rolesSection } from './roles-section.ts';
import { standingSection } from './standing-section.ts';

/** One member: who they are, their roles, the keys they made, whether they may come in. */
export const memberRoutes = [
  member.view({
    name: 'showMember',
    path: '/members/person/:personId',
    permission: 'org.members.read',
    show: (visit) => memberPage(visit, freshForm()),
  }),
];

/** `state` is that of the form that was refused; its sentence stands on top. */
export async function memberPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const shown = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const mayChange = visit.may('org.members.manage') && (!shown.isOwner || isOwner(visit)) && shown.status !== 'left';
  return page({
    title: truncate(shown.name, 80),
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${visit.may('org.members.manage') && shown.isOwner && !isOwner(visit) ? notice('info', 'This member is an owner. Only another owner can change them.') : nothing}
      ${whoSection(visit, shown)}
      ${mayChange ? html`<p class="actions">${linkButton(memberPath(visit, shown.personId, '/change'), 'Change name or title', 'secondary')}</p>` : nothing}
      ${await rolesSection(visit, shown, mayChange, state)}
      ${visit.may('org.members.manage') || visit.may('org.keys.manage') ? await keysSection(visit, shown) : nothing}
      ${standingSection(visit, shown, mayChange)}`,
  });
}

function whoSection(visit: MemberVisit, shown: MemberDetails): Html {
  const { name, email, title, status, lastSeenAt, activeGrants, personId } = shown;
  const clients = activeGrants === 0 ? 'none now' : `${activeGrants.toLocaleString('en')} now`;
  const roster = clientsPath(visit, personId);
  return detailList([
    name.length > 80 && ['Name', html`<bdi>${name}</bdi>`],
    ['E-mail', html`<bdi>${email}</bdi>`],
    title !== null && ['Title', html`<bdi>${title}</bdi>`],
    ['Status', html`${memberStatus(status)} <span class="quiet">${statusMeaning[status]}</span>`],
    ['Last sign-in', relativeTime(lastSeenAt, noSignIn(shown))],
    ['Client families', roster === null ? clients : html`<a href="${roster}">${clients}</a>`],
  ]);
}
