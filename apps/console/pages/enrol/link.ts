import { z } from 'zod';
import { acceptEnrolment } from '#domain/identity/enrol.ts';
import { findEnrolment } from '#domain/identity/enrolment.ts';
import type { EnrolmentDetails } from '#domain/identity/types.ts';
import { form } from '../../components/form.ts';
import { type Answer, type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { anyone, person } from '../../web/route.ts';
import type { PersonVisit, Visit } from '../../web/visit.ts';
import { factorChoicePage } from './factor.ts';
import { findOpenEnrolment, linkOverPage } from './open.ts';
import { passwordPage } from './password.ts';

/** A one-time link opened. Opening uses nothing up: programs that look at links in mails open them too. */
export const linkRoutes = [
  anyone.view({
    name: 'openEnrolmentLink',
    path: '/enrol/:token',
    async show({ console, params }) {
      const token = params.token ?? '';
      const enrolment = await findEnrolment(console.em.fork(), token, console.now());
      // On at once, so that the token stands neither in the address bar nor in what the browser remembers.
      return enrolment === null ? linkOverPage() : redirect('/enrol', { enrolment: token });
    },
  }),

  anyone.view({
    name: 'showEnrolment',
    path: '/enrol',
    async show(visit) {
      const enrolment = await findOpenEnrolment(visit);
      return enrolment === null ? linkOverPage() : nextStep(visit, enrolment);
    },
  }),

  person.action({
    name: 'joinOrganization',
    path: '/enrol/join',
    form: z.object({}),
    async act(visit) {
      const { console, session, visitor, enrolmentToken } = visit;
      const joined = await acceptEnrolment(console.em, session, { token: enrolmentToken ?? '', visitor }, console.now);
      return redirect(`/o/${joined.organizationId}`, { told: 'Welcome.', enrolment: null });
    },
    again: async (visit, state) => {
      const enrolment = await findOpenEnrolment(visit);
      return enrolment === null ? linkOverPage() : joinPage(visit, enrolment, state);
    },
  }),
];

function nextStep(visit: Visit, enrolment: EnrolmentDetails): Answer {
  if (enrolment.kind === 'join')
    return visit.session?.state === 'full'
      ? joinPage(visit as PersonVisit, enrolment, freshForm())
      : redirect('/sign-in?to=%2Fenrol', { told: `Sign in to join ${enrolment.organizationName}.` });
  return enrolment.hasPassword ? factorChoicePage(visit, freshForm()) : passwordPage(visit, enrolment, freshForm());
}

function joinPage(visit: PersonVisit, enrolment: EnrolmentDetails, state: FormState): Page {
  return page({
    title: `Join ${enrolment.organizationName}`,
    body: html`<p>You are signed in as ${visit.session.email}.</p>
      ${form(visit, { action: '/enrol/join', state, button: `Join ${enrolment.organizationName}` })}`,
  });
}
