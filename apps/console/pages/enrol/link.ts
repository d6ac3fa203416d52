import { z } from 'zod';
import { acceptEnrolment } from '#domain/identity/enrol.ts';
import { findEnrolment } from '#domain/identity/enrolment.ts';
import { findLinkToken } from '#domain/identity/enrolment-link.ts';
import type { EnrolmentDetails } from '#domain/identity/types.ts';
import { form, textField } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, line } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { anyone, person } from '../../web/route.ts';
import type { PersonVisit, Visit } from '../../web/visit.ts';
import { findOpenEnrolment, linkExpiredPage } from './open.ts';
import { passwordPage } from './password.ts';

/**
 * Opens a one-time link. Its token is the fragment of the URL, which no server receives. The
 * console's script sends it as a form; without the script, the person pastes the link. Opening does
 * not use the link up, because mail scanners open links too.
 */
export const linkRoutes = [
  ...anyone.formPage({
    pageName: 'showEnrolmentLink',
    name: 'openEnrolmentLink',
    path: '/enrol',
    form: z.object({
      link: line('the link', 300).refine(
        (text) => findLinkToken(text) !== null,
        'Paste the whole link, with everything after the # sign.',
      ),
    }),
    async act({ console }, { link }) {
      const token = findLinkToken(link) ?? '';
      const enrolment = await findEnrolment(console.em.fork(), token, console.now());
      return enrolment === null ? linkExpiredPage() : redirect('/enrol/step', { enrolment: token });
    },
    // The pasted text may be a link, so no page shows it again.
    render: (visit, state) => linkPage(visit, { ...state, values: {} }),
  }),

  anyone.view({
    name: 'showEnrolment',
    path: '/enrol/step',
    async show(visit) {
      const enrolment = await findOpenEnrolment(visit);
      return enrolment === null ? linkExpiredPage() : firstPage(visit, enrolment, freshForm());
    },
  }),

  person.action({
    name: 'joinOrganization',
    path: '/enrol/join',
    form: z.object({}),
    async act(visit) {
      const { console, session, visitor, enrolmentToken } = visit;
      const joined = await acceptEnrolment(console.em, session, { token: enrolmentToken ?? '', visitor }, console.now);
      return redirect(`/o/${joined.organizationId}`, { flash: 'You have joined the organization.', enrolment: null });
    },
    rerender: async (visit, state) => {
      const enrolment = await findOpenEnrolment(visit);
      return enrolment === null ? linkExpiredPage() : firstPage(visit, enrolment, state);
    },
  }),
];

/**
 * Renders the first page of a link: for the signed-in person whom it invites, a button; for anyone
 * else the same page, whether its person can sign in or not. Its creator can open it too.
 */
function firstPage(visit: Visit, enrolment: EnrolmentDetails, state: FormState): Page {
  const { session } = visit;
  const isInvited = enrolment.kind === 'invite' && session?.state === 'full' && session.personId === enrolment.personId;
  return isInvited ? joinPage(visit as PersonVisit, enrolment, state) : passwordPage(visit, enrolment, state);
}

function linkPage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Open your link',
    body: html`
      ${form(visit, {
        state,
        button: 'Continue',
        attributes: { 'data-fragment': 'link' },
        fields: textField(state, {
          name: 'link',
          label: 'Link',
          autocomplete: 'off',
          exact: true,
          maxLength: 300,
          hint: 'Paste the whole link that you were given, with everything after the # sign.',
        }),
      })}
      ${
        visit.enrolmentToken === null
          ? nothing
          : html`<p><a href="/enrol/step">Continue with the link that you opened before</a></p>`
      }`,
  });
}

function joinPage(visit: PersonVisit, enrolment: EnrolmentDetails, state: FormState): Page {
  return page({
    title: `Join ${enrolment.organizationName}`,
    body: html`<p>You are signed in as ${visit.session.email}.</p>
      ${form(visit, { action: '/enrol/join', state, button: `Join ${enrolment.organizationName}` })}`,
  });
}
