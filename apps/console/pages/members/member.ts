import { readableEmail } from '#domain/contract/email.ts';
import type { MemberDetails } from '#domain/members/list-members.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { problemNotice } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { memberStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { truncate } from '../../components/text.ts';
import { relativeTime, time } from '../../components/time.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isOwner } from './assignable-roles.ts';
import { noSignIn, statusDescriptions } from './cells.ts';
import { getMember } from './find-member.ts';
import { keysSection } from './keys-section.ts';
import { membershipSection } from './membership-section.ts';
import { clientsPath, memberPath } from './path.ts';
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

/** Renders the page. `state` is that of a rejected form; its problem is shown on top. */
export async function memberPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const shown = await getMember(visit);
  const mayManage = visit.may('org.members.manage');
  const isProtected = shown.isOwner && !isOwner(visit);
  const mayChange = mayManage && !isProtected && shown.status !== 'left';
  const edit = linkButton(memberPath(visit, shown.personId, '/change'), 'Edit member', 'secondary');
  return page({
    title: truncate(shown.name, 80),
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
      ${problemNotice(state)}
      ${mayManage && isProtected ? notice('info', 'This member is an owner. Only owners can edit owners.') : nothing}
      ${detailsSection(visit, shown)}
      ${mayChange ? html`<p class="actions">${edit}</p>` : nothing}
      ${await rolesSection(visit, shown, mayChange, state)}
      ${mayManage || visit.may('org.keys.manage') ? await keysSection(visit, shown) : nothing}
      ${membershipSection(visit, shown, mayChange)}`,
  });
}

function detailsSection(visit: MemberVisit, shown: MemberDetails): Html {
  const { name, email, title, status, lastSeenAt, activeGrants, personId, account } = shown;
  const clients = activeGrants.toLocaleString('en');
  const roster = clientsPath(visit, personId);
  return detailList([
    name.length > 80 && ['Name', html`<bdi>${name}</bdi>`],
    ['Email', html`<bdi>${readableEmail(email)}</bdi>`],
    title !== null && ['Title', html`<bdi>${title}</bdi>`],
    ['Status', html`${memberStatus(status)} <span class="quiet">${statusDescriptions[status]}</span>`],
    ['Last sign-in', relativeTime(lastSeenAt, noSignIn(shown))],
    account !== null &&
      visit.may('org.members.manage') && [
        'Account at the provider',
        account.linkedAt === null ? 'Not linked' : html`Linked ${time(account.linkedAt)}`,
      ],
    ['Active clients', roster === null ? clients : html`<a href="${roster}">${clients}</a>`],
  ]);
}
