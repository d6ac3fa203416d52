import type { MemberDetails } from '#domain/organization/list-members.ts';
import { buttonForm } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { time } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from './path.ts';

/** Draws the actions on a membership: invitation link, suspend, reinstate, remove, leave. */
export function membershipSection(visit: MemberVisit, shown: MemberDetails, mayChange: boolean): Html {
  const isSelf = shown.personId === visit.by.personId;
  const parts = [
    mayChange && !shown.hasEnrolled && shown.status !== 'suspended' && linkPart(visit, shown),
    mayChange && !isSelf && suspensionPart(visit, shown),
    isSelf && leavingPart(visit),
    mayChange && !isSelf && removalPart(visit, shown),
    shown.status === 'left' && visit.may('org.members.manage') && returnPart(visit, shown),
  ].filter((part) => part !== false);
  if (parts.length === 0) return nothing;
  return html`<section aria-labelledby="membership"><h2 id="membership">${
    isSelf ? 'Your membership' : 'Membership'
  }</h2><div class="two">${parts}</div></section>`;
}

function linkPart(visit: MemberVisit, { personId, link }: MemberDetails): Html {
  return html`<section aria-labelledby="link"><h3 id="link">${link === null ? 'Invitation link' : 'Invite pending'}</h3>
    <p>${
      link === null
        ? 'This member can’t sign in yet. Create an invitation link and send it to them.'
        : html`The invitation link expires ${time(link.expiresAt)}. A new link replaces it.`
    }</p>
    <div class="actions">${buttonForm(visit, {
      action: memberPath(visit, personId, '/link'),
      button: link === null ? 'Create link' : 'Create new link',
    })}</div></section>`;
}

function suspensionPart(visit: MemberVisit, { personId, status }: MemberDetails): Html {
  if (status === 'suspended')
    return html`<section aria-labelledby="reinstate"><h3 id="reinstate">Reinstate</h3>
      <p>Restores the member’s roles and API keys. You need all permissions of their roles.</p>
      ${buttonForm(visit, {
        action: memberPath(visit, personId, '/reinstate'),
        button: 'Reinstate member',
      })}</section>`;
  return html`<section aria-labelledby="suspend"><h3 id="suspend">Suspend</h3>
    <p>Stops the member’s access and API keys until you reinstate them. Roles and clients are kept.</p>
    <div class="actions">${linkButton(
      memberPath(visit, personId, '/suspend'),
      'Suspend member…',
      'secondary',
    )}</div></section>`;
}

function removalPart(visit: MemberVisit, { personId }: MemberDetails): Html {
  return html`<section aria-labelledby="remove"><h3 id="remove">Remove</h3>
    <p>Ends the member’s access and API keys.</p>
    <div class="actions">${linkButton(
      memberPath(visit, personId, '/remove'),
      'Remove member…',
      'secondary',
    )}</div></section>`;
}

function leavingPart(visit: MemberVisit): Html {
  return html`<section aria-labelledby="leave"><h3 id="leave">Leave</h3>
    <p>Ends your access and roles. The last active owner can’t leave.</p>
    <div class="actions">${linkButton(visit.at('/leave'), 'Leave organization…', 'secondary')}</div></section>`;
}

function returnPart(visit: MemberVisit, { email }: MemberDetails): Html {
  return html`<section aria-labelledby="return"><h3 id="return">Invite again</h3>
    <p>The member returns with the roles that you choose, and with their remaining clients.</p>
    <div class="actions">${linkButton(
      visit.at(`/members/invite?${new URLSearchParams({ email })}`),
      'Invite again',
      'secondary',
    )}</div></section>`;
}
