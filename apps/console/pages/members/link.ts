import { z } from 'zod';
import { readableEmail } from '#domain/contract/email.ts';
import type { SealingKeys } from '#domain/encryption/envelope.ts';
import { type CreatedEnrolment, createLink } from '#domain/identity/create-link.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { getMemberDetails, type MemberDetails } from '#domain/members/list-members.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { linkButton } from '../../components/link.ts';
import { shownBefore, shownOnce } from '../../components/secret.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPage } from './member.ts';
import { memberPath, readPersonId } from './path.ts';

/**
 * Creates a link that replaces the previous one, for a member without a confirmed sign-in, and mails it
 * where mail is sent.
 */
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
      const request = { ...visit.request, personId, mailKeys: findMailKeys(visit) };
      return linkPage(visit, await createLink(database, request, now), linkText);
    },
    again: (visit) =>
      visit.console.sendsMail
        ? nothing
        : shownBefore(
            'The link',
            'If you didn’t send it, create a new one on the member’s page.',
            memberPath(visit, readPersonId(visit)),
            'View member',
          ),
    rerender: memberPage,
  }),
];

/** Returns the keys that seal a link for its mail; null when the console shows links. */
export const findMailKeys = ({ console }: MemberVisit): SealingKeys | null =>
  console.sendsMail ? console.factors.sealingKeys : null;

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

/** Returns the page that says what becomes of a link. It is the same whether its address signs in here. */
export async function linkPage(
  visit: MemberVisit,
  link: CreatedEnrolment,
  { title, text }: { title: string; text: string },
): Promise<Page> {
  const { database, now, sendsMail } = visit.console;
  const member = await getMemberDetails(database, visit.organizationId, link.personId, now());
  const isMailed = sendsMail && link.kind === 'invite';
  const path = memberPath(visit, link.personId);
  return page({
    title: isMailed ? 'Invitation sent' : title,
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
      ${text === '' ? nothing : html`<p>${text}</p>`}
      ${isMailed ? mailedLink(member, link) : shownLink(visit, member, link)}
      <p class="actions">${linkButton(path, isMailed ? 'View member' : 'I’ve saved it')}</p>`,
  });
}

/** No page shows the link itself: using it proves that its person reads the address. */
const mailedLink = ({ name, email }: MemberDetails, { expiresAt }: CreatedEnrolment): Html => html`
  <p>${displayName(name)} gets an email at <bdi>${readableEmail(email)}</bdi> within minutes. Its link works once and
    expires ${time(expiresAt)}. It asks the member to sign in, or to set up sign-in.</p>
  <p>The member’s page shows if the mail server rejects the email.</p>`;

/** Shows the link, once. */
const shownLink = (
  { console }: MemberVisit,
  { name }: MemberDetails,
  { token, expiresAt }: CreatedEnrolment,
): Html => html`
  <p>Send this link to ${displayName(name)} through a private channel. Anyone who opens it first can join as this
    member.</p>
  ${shownOnce({
    label: 'Invitation link',
    value: enrolmentLink(console.origin, token),
    advice: 'You can create a new link at any time, which replaces this one.',
  })}
  <p>The link works once and expires ${time(expiresAt)}. It asks the member to sign in, or to set up sign-in.</p>`;
