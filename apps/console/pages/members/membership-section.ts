import type { MemberDetails } from '#domain/members/list-members.ts';
import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { buttonForm } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { describeMail } from '../../components/mail-outcome.ts';
import { time } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from './path.ts';

/** Renders the actions on a membership: invitation link, suspend, reinstate, remove, leave. */
export function membershipSection(visit: MemberVisit, shown: MemberDetails, mayChange: boolean): Html {
  const { status, hasEnrolled, personId } = shown;
  const isSelf = personId === visit.by.personId;
  const parts = [
    mayChange && !hasEnrolled && status !== 'suspended' && linkPart(visit, shown),
    mayChange && !isSelf && suspensionPart(visit, shown),
    isSelf && leavingPart(visit),
    mayChange && !isSelf && removalPart(visit, shown),
    status === 'left' && visit.may('org.members.manage') && returnPart(visit, shown),
  ].filter((part) => part !== false);
  if (parts.length === 0) return nothing;
  return html`<section aria-labelledby="membership"><h2 id="membership">${
    isSelf ? 'Your membership' : 'Membership'
  }</h2><div class="two">${parts}</div></section>`;
}

const part = (id: string, heading: string, text: Child, action: Html): Html =>
  html`<section aria-labelledby="${id}"><h3 id="${id}">${heading}</h3>
    <p>${text}</p><div class="actions">${action}</div></section>`;

function linkPart(visit: MemberVisit, { personId, link, invitation }: MemberDetails): Html {
  const { sendsMail } = visit.console;
  const action = memberPath(visit, personId, '/link');
  if (link === null) {
    const text = `This member can’t sign in yet. ${
      sendsMail ? 'Send an invitation.' : 'Create an invitation link and send it to them.'
    }`;
    const button = sendsMail ? 'Send invitation' : 'Create link';
    return part('link', 'Invitation link', text, buttonForm(visit, { action, button }));
  }
  const text = html`The invitation link expires ${time(link.expiresAt)}. A new link replaces it.
    ${invitation === null ? nothing : describeMail(invitation)}`;
  const button = sendsMail ? 'Send new invitation' : 'Create new link';
  return part('link', 'Invite pending', text, buttonForm(visit, { action, button }));
}

function suspensionPart(visit: MemberVisit, { personId, status }: MemberDetails): Html {
  if (status === 'suspended') {
    const text = 'Restores the member’s roles and API keys. You need all permissions of their roles.';
    const action = memberPath(visit, personId, '/reinstate');
    return part('reinstate', 'Reinstate', text, buttonForm(visit, { action, button: 'Reinstate member' }));
  }
  const text = 'Stops the member’s access and API keys until you reinstate them. Roles and clients are kept.';
  const button = linkButton(memberPath(visit, personId, '/suspend'), 'Suspend member…', 'secondary');
  return part('suspend', 'Suspend', text, button);
}

function removalPart(visit: MemberVisit, { personId }: MemberDetails): Html {
  const button = linkButton(memberPath(visit, personId, '/remove'), 'Remove member…', 'secondary');
  return part('remove', 'Remove', 'Ends the member’s access and API keys.', button);
}

function leavingPart(visit: MemberVisit): Html {
  const button = linkButton(visit.at('/leave'), 'Leave organization…', 'secondary');
  return part('leave', 'Leave', 'Ends your access and roles. The last active owner can’t leave.', button);
}

function returnPart(visit: MemberVisit, { email }: MemberDetails): Html {
  const path = visit.at(`/members/invite?${new URLSearchParams({ email })}`);
  const text = 'The member returns with the roles that you choose, and with their remaining clients.';
  return part('return', 'Invite again', text, linkButton(path, 'Invite again', 'secondary'));
}
