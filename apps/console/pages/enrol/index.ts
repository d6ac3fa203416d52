import {
  completeEnrolment,
  type FirstFactor,
  startEnrolmentPasskey,
  startEnrolmentTotp,
} from '#domain/identity/accept-link.ts';
import { endSession } from '#domain/identity/sessions.ts';
import { html } from '#runtime/pages/html.ts';
import { factorSetupRoutes } from '../../components/factor-setup.ts';
import { buttonForm, problemNotice } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { recoveryCodes } from '../../components/secret.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { anyone } from '../../web/route.ts';
import type { Visit } from '../../web/visit.ts';
import { linkRoutes, openPage } from './link.ts';

/** Completes an enrolment with a passkey or an authenticator app, and signs the person in. */
export const routes = [
  ...linkRoutes,

  anyone.view({
    name: 'showFactorChoice',
    path: '/enrol/factor',
    show: (visit) =>
      openPage(visit, ({ passwordHash, providerId }) =>
        passwordHash === null && providerId === null ? redirect('/enrol/step') : factorChoicePage(visit, freshForm()),
      ),
  }),

  ...factorSetupRoutes(anyone, {
    path: '/enrol',
    stepUp: false,
    isNamed: false,
    names: ['startEnrolmentTotp', 'enrolWithTotp', 'startEnrolmentPasskey', 'enrolWithPasskey'],
    titles: { totp: 'Set up your authenticator app', passkey: 'Create a passkey', verify: 'Verify code' },
    other: html`<a href="/enrol/factor">Use another method</a>`,
    startTotp: ({ console, enrolmentToken }) =>
      startEnrolmentTotp(console.database, enrolmentToken ?? '', console.factors, console.now),
    startPasskey: ({ console, enrolmentToken }) =>
      startEnrolmentPasskey(console.database, enrolmentToken ?? '', console.factors.relyingParty, console.now),
    add: complete,
    within: openPage,
    rerender: (visit, state) => openPage(visit, () => factorChoicePage(visit, state)),
  }),
];

/** Renders the choice of the second factor. */
function factorChoicePage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Choose your second factor',
    body: html`${problemNotice(state)}
      <p>You use it after your password or provider each time you sign in. You can add more later.</p>
      <div class="two">
        <section><h2>Passkey</h2><p>Use your fingerprint, face, PIN or security key. It is the
          fastest option and resists phishing.</p>
          ${buttonForm(visit, { action: '/enrol/passkey/start', button: 'Use a passkey', kind: 'primary' })}</section>
        <section><h2>Authenticator app</h2><p>An app on your phone shows a new code every 30 seconds.</p>
          ${buttonForm(visit, { action: '/enrol/totp/start', button: 'Use an authenticator app' })}</section>
      </div>`,
  });
}

/** Completes the enrolment, ends the browser's previous session, and shows the recovery codes. */
async function complete(visit: Visit, factor: FirstFactor): Promise<Page> {
  const { console, session, visitor, enrolmentToken } = visit;
  const { database, factors, now } = console;
  const input = { token: enrolmentToken ?? '', factor, visitor };
  const enrolled = await completeEnrolment(database, input, factors, now);
  const { token, email, organizationId, recoveryCodes: codes } = enrolled;
  if (session !== null) await endSession(database, session, session.id, visitor).catch(() => {});
  return page({
    title: 'You’re all set',
    session: { token },
    browser: { token: enrolled.browser, email },
    enrolment: null,
    body: html`${recoveryCodes(codes)}
      <p class="actions">${linkButton(`/o/${organizationId}`, 'I’ve saved them')}</p>`,
  });
}
