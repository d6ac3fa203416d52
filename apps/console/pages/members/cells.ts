import { readableEmail } from '#domain/contract/email.ts';
import type { AssignedRole, MemberRow, MemberStatus } from '#domain/members/list-members.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { memberStatus } from '../../components/status.ts';
import type { Column } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { relativeTime } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from './path.ts';

/** Explains each status on the page of a member. */
export const statusDescriptions: Record<MemberStatus, string> = {
  active: 'Has the permissions of their roles.',
  invited: 'Has not accepted the invitation yet.',
  suspended: 'Has no access until reinstated. Their API keys are inactive.',
  left: 'Has no access. Kept because clients and the audit log refer to them.',
};

/** Returns roles, one per line. */
function roleList(roles: readonly AssignedRole[]): Html {
  if (roles.length === 0) return html`<span class="quiet">–</span>`;
  return html`<ul class="plain-list">${roles.map(({ name }) => html`<li>${displayName(name)}</li>`)}</ul>`;
}

/**
 * Returns the text in place of a last sign-in. An organization can't see whether removed or invited
 * people sign in elsewhere.
 */
export const noSignIn = ({ status, hasEnrolled }: Pick<MemberRow, 'status' | 'hasEnrolled'>): string => {
  if (status === 'left') return '–';
  if (status === 'invited') return 'Invite pending';
  return hasEnrolled ? 'Never' : 'Not set up';
};

export const memberColumns = (visit: MemberVisit): Column<MemberRow>[] => [
  {
    heading: 'Member',
    main: true,
    cell: ({ personId, name, title, email }) =>
      html`<a href="${memberPath(visit, personId)}">${displayName(name)}</a>
        <div class="quiet regular">${title === null ? nothing : html`${displayName(title)}<br>`}
          ${displayName(readableEmail(email))}</div>`,
  },
  { heading: 'Status', whenNarrow: 'beside', cell: ({ status }) => memberStatus(status) },
  { heading: 'Roles', cell: ({ roles }) => roleList(roles) },
  { heading: 'Active API keys', numeric: true, whenNarrow: 'hidden', cell: ({ validKeys }) => validKeys },
  {
    heading: 'Last sign-in',
    cell: (member) => relativeTime(member.lastSeenAt, noSignIn(member)),
  },
];
