import { z } from 'zod';
import { type CreatedEnrolment, createEnrolment } from '#domain/identity/enrolment.ts';
import { enrolmentLink } from '#domain/identity/enrolment-link.ts';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { displayName } from '../../components/display-name.ts';
import { linkButton } from '../../components/link.ts';
import { shownOnce } from '../../components/secret.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { getMember } from './find-member.ts';
import { memberPage } from './member.ts';
import { memberPath } from './path.ts';

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
      const { em, now } = visit.console;
      const { email } = await getMember(visit);
      return linkPage(visit, await createEnrolment(em, { ...visit.request, email }, now));
    },
    rerender: memberPage,
  }),
];

/**
 * Returns the page that shows a link once. It is the same for both kinds of link, so that an
 * invitation does not reveal whether its address signs in here.
 */
export async function linkPage(visit: MemberVisit, { token, expiresAt, personId }: CreatedEnrolment): Promise<Page> {
  const { em, now, origin } = visit.console;
  const { name } = await getMemberDetails(em, visit.organizationId, personId, now());
  return page({
    title: 'Invitation created',
    breadcrumbs: [['Members', visit.at('/members')]],
    body: html`
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
