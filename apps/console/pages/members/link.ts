import { z } from 'zod';
import { type CreatedEnrolment, createLink } from '#domain/identity/create-link.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { getMemberDetails } from '#domain/members/list-members.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { linkButton } from '../../components/link.ts';
import { shownBefore, shownOnce } from '../../components/secret.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPage } from './member.ts';
import { memberPath, readPersonId } from './path.ts';

/** Creates a link that replaces the previous one, for a member without a confirmed sign-in. */
export const linkRoutes = [
  member.action({
    name: 'renewInvitation',
    path: '/members/person/:personId/link',
    permission: 'org.members.manage',
    stepUp: true,
    once: true,
    form: z.object({}),
    async act(visit) {
      const { database, now } = visit.console;
      const personId = readPersonId(visit);
      return linkPage(visit, await createLink(database, { ...visit.request, personId }, now), linkText);
    },
    again: (visit) =>
      shownBefore(
        'The link',
        'If you didn’t send it, create a new one on the member’s page.',
        memberPath(visit, readPersonId(visit)),
        'View member',
      ),
    rerender: memberPage,
  }),
];

/** A new link of a member: nothing else of them changed. */
export const linkText = {
  title: 'Link created',
  text: 'It replaces the earlier link. Name and roles did not change: edit them on the member’s page.',
};

/** Of a new member, and of one who was a member before. */
export const invitationText = { title: 'Invitation created', text: '' };
export const formerText = {
  ...invitationText,
  text: 'This person was a member before. Their earlier entries and clients now show the name that you typed.',
};

/** Returns the page that shows a link once. It is the same whether its address signs in here. */
export async function linkPage(
  visit: MemberVisit,
  { token, expiresAt, personId }: CreatedEnrolment,
  { title, text }: { title: string; text: string },
): Promise<Page> {
  const { database, now, origin } = visit.console;
  const { name } = await getMemberDetails(database, visit.organizationId, personId, now());
  return page({
    title,
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
      ${text === '' ? nothing : html`<p>${text}</p>`}
      <p>Send this link to ${displayName(name)} through a private channel. Anyone who opens it first can join as this
        member.</p>
      ${shownOnce({
        label: 'Invitation link',
        value: enrolmentLink(origin, token),
        advice: 'You can create a new link at any time, which replaces this one.',
      })}
      <p>The link works once and expires ${time(expiresAt)}. It asks the member to sign in, or to set up sign-in.</p>
      <p class="actions">${linkButton(memberPath(visit, personId), 'I’ve saved it')}</p>`,
  });
}
