import type { HeldRole, MemberRow, MemberStatus } from '#domain/organization/list-members.ts';
import { displayName } from '../../components/display-name.ts';
import { memberStatus } from '../../components/status.ts';
import type { Column } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from './path.ts';

/** What each status means for the member, as their page says it. */
export const statusMeaning: Record<MemberStatus, string> = {
  active: 'May do what their roles say.',
  invited: 'Has a link on the way, and may do nothing until they have used it.',
  suspended: 'May do nothing until somebody reinstates them; keys they made stand still.',
  left: 'Is no member any more. Their row stays, because clients and the log name it.',
};

/** Roles, one a line. */
export function roleList(roles: readonly HeldRole[]): Html {
  if (roles.length === 0) return html`<span class="quiet">none</span>`;
  return html`<ul class="plain-list">${roles.map(({ name }) => html`<li>${displayName(name)}</li>`)}</ul>`;
}

/**
 * What stands where no last sign-in is told: of who has not accepted an invitation, or has left, an
 * organization is not told whether they sign in here.
 */
export const noSignIn = ({ status, hasEnrolled }: Pick<MemberRow, 'status' | 'hasEnrolled'>): string => {
  if (status === 'left') return 'not told';
  if (status === 'invited') return 'not here yet';
  return hasEnrolled ? 'never' : 'Not set up';
};

/** The columns of the list of members. */
export const memberColumns = (visit: MemberVisit): Column<MemberRow>[] => [
  {
    heading: 'Member',
    main: true,
    cell: ({ personId, name, title, email }) =>
      html`<a href="${memberPath(visit, personId)}">${displayName(name)}</a>
        <div class="quiet regular">${title === null ? nothing : html`${displayName(title)}<br>`}${displayName(email)}</div>`,
  },
  { heading: 'Status', cell: ({ status }) => memberStatus(status) },
  { heading: 'Roles', cell: ({ roles }) => roleList(roles) },
  { heading: 'Live keys made', numeric: true, cell: ({ liveKeys }) => liveKeys },
  {
    heading: 'Last sign-in',
    cell: (member) => relativeTime(member.lastSeenAt, noSignIn(member)),
  },
];
