import type { MemberDetails } from '#domain/organization/list-members.ts';
import { buttonForm } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { time } from '../../components/time.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from './path.ts';

/**
 * Whether a member may come in: their link, suspending and reinstating them, removing them or
 * leaving.
 */
export function standingSection(visit: MemberVisit, shown: MemberDetails, mayChange: boolean): Html {
  const isSelf = shown.personId === visit.by.personId;
  const parts = [
    mayChange && !shown.hasEnrolled && shown.status !== 'suspended' && linkPart(visit, shown),
    mayChange && !isSelf && suspensionPart(visit, shown),
    isSelf && leavingPart(visit),
    mayChange && !isSelf && removalPart(visit, shown),
    shown.status === 'left' && visit.may('org.members.manage') && returnPart(visit, shown),
  ].filter((part) => part !== false);
  if (parts.length === 0) return nothing;
  return html`<section aria-labelledby="standing"><h2 id="standing">${isSelf ? 'Your membership' : 'Membership'}</h2><div class="two">${parts}</div></section>`;
}

function linkPart(visit: MemberVisit, { personId, link }: MemberDetails): Html {
  const use = 'choose a password and a second factor, or confirm the sign-in that they have here already';
  return html`<section aria-labelledby="link"><h3 id="link">${link === null ? 'Enrolment link' : 'A link is on the way'}</h3>
    <p>${
      link === null
        ? `They cannot sign in to this organization yet, and no link of theirs works now. With one they ${use}.`
        : html`With it they ${use}. It works until ${time(link.expiresAt)}; a new one makes it void.`
    }</p>
    <div class="actions">${buttonForm(visit, { action: memberPath(visit, personId, '/link'), button: link === null ? 'Make a link' : 'Make a new link' })}</div></section>`;
}

function suspensionPart(visit: MemberVisit, { personId, status }: MemberDetails): Html {
  if (status === 'suspended')
    return html`<section aria-labelledby="reinstate"><h3 id="reinstate">Reinstate</h3>
      <p>They may do again what their roles say, and their keys read again, from that moment on. You must hold all that their roles give.</p>
      ${buttonForm(visit, { action: memberPath(visit, personId, '/reinstate'), button: 'Reinstate' })}</section>`;
  return html`<section aria-labelledby="suspend"><h3 id="suspend">Suspend</h3>
    <p>They keep their roles and clients, and may do nothing until they are reinstated. Their keys stand still.</p>
    <div class="actions">${linkButton(memberPath(visit, personId, '/suspend'), 'Suspend…', 'secondary')}</div></section>`;
}

function removalPart(visit: MemberVisit, { personId }: MemberDetails): Html {
  return html`<section aria-labelledby="remove"><h3 id="remove">Remove</h3>
    <p>They leave the organization, without their roles. Their keys stop for good, unless they are invited again.</p>
    <div class="actions">${linkButton(memberPath(visit, personId, '/remove'), 'Remove…', 'secondary')}</div></section>`;
}

function leavingPart(visit: MemberVisit): Html {
  return html`<section aria-labelledby="leave"><h3 id="leave">Leave</h3>
    <p>You give up your roles and see this organization no more. The last active owner cannot leave; one who has not enrolled does not count.</p>
    <div class="actions">${linkButton(visit.at('/leave'), 'Leave…', 'secondary')}</div></section>`;
}

function returnPart(visit: MemberVisit, { email }: MemberDetails): Html {
  return html`<section aria-labelledby="return"><h3 id="return">Invite again</h3>
    <p>They come back with the roles you choose then, and with the clients whose access stayed with them.</p>
    <div class="actions">${linkButton(visit.at(`/members/invite?${new URLSearchParams({ email })}`), 'Invite again', 'secondary')}</div></section>`;
}
