import { z } from 'zod';
import {
  completeEnrolment,
  type FirstFactor,
  startEnrolmentPasskey,
  startEnrolmentTotp,
} from '#domain/identity/enrol.ts';
import { endSession } from '#domain/identity/sessions.ts';
import { buttonForm, problemNotice } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { newPasskeyForm } from '../../components/second-factor.ts';
import { recoveryCodes } from '../../components/secret.ts';
import { totpDrawnAgain, totpFields, totpForm } from '../../components/totp-setup.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { anyone } from '../../web/route.ts';
import { parsePasskeyResponse } from '../../web/second-factor.ts';
import type { Visit } from '../../web/visit.ts';
import { findOpenEnrolment, linkExpiredPage } from './open.ts';

/** Completes an enrolment with a passkey or an authenticator app, and signs the person in. */
export const factorRoutes = [
  anyone.view({
    name: 'showFactorChoice',
    path: '/enrol/factor',
    async show(visit) {
      const enrolment = await findOpenEnrolment(visit);
      if (enrolment === null) return linkExpiredPage();
      return enrolment.hasPassword ? factorChoicePage(visit, freshForm()) : redirect('/enrol/step');
    },
  }),

  anyone.action({
    name: 'startEnrolmentTotp',
    path: '/enrol/totp/start',
    form: z.object({}),
    async act(visit) {
      const { em, factors, now } = visit.console;
      const { secret, uri } = await startEnrolmentTotp(em, visit.enrolmentToken ?? '', factors, now);
      return totpPage(visit, freshForm({ secret, uri }));
    },
    rerender: factorChoicePage,
  }),

  anyone.action({
    name: 'enrolWithTotp',
    path: '/enrol/totp',
    form: z.object(totpFields),
    act: (visit, { code }) => complete(visit, { kind: 'totp', code, name: 'Authenticator app' }),
    rerender: totpPage,
  }),

  anyone.action({
    name: 'startEnrolmentPasskey',
    path: '/enrol/passkey/start',
    form: z.object({}),
    act: (visit) => passkeyPage(visit, freshForm()),
    rerender: factorChoicePage,
  }),

  anyone.action({
    name: 'enrolWithPasskey',
    path: '/enrol/passkey',
    form: z.object({ passkey: z.string().default('') }),
    act: (visit, { passkey }) =>
      complete(visit, { kind: 'passkey', response: parsePasskeyResponse(passkey), name: 'Passkey' }),
    rerender: passkeyPage,
  }),
];

/** Renders the choice of the second factor. */
export function factorChoicePage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Choose your second factor',
    body: html`${problemNotice(state)}
      <p>You use it after your password each time you sign in. You can add more later.</p>
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
  const { em, factors, now } = console;
  const input = { token: enrolmentToken ?? '', factor, visitor };
  const enrolled = await completeEnrolment(em, input, factors, now);
  const { token, email, organizationId, recoveryCodes: codes } = enrolled;
  if (session !== null) await endSession(em, session, session.id, visitor).catch(() => {});
  return page({
    title: 'You’re all set',
    session: { token },
    browser: { token: enrolled.browser, email },
    enrolment: null,
    body: html`${recoveryCodes(codes)}
      <p class="actions">${linkButton(`/o/${organizationId}`, 'I’ve saved them')}</p>`,
  });
}

const otherMethod = html`<a href="/enrol/factor">Use another method</a>`;

function totpPage(visit: Visit, state: FormState): Page {
  const setup = totpDrawnAgain(state);
  if (setup === null) return factorChoicePage(visit, state);
  return page({
    title: 'Set up your authenticator app',
    body: totpForm(visit, setup, { action: '/enrol/totp', state, button: 'Verify code', secondary: otherMethod }),
  });
}

async function passkeyPage(visit: Visit, state: FormState): Promise<Page> {
  const { em, factors, now } = visit.console;
  const options = await startEnrolmentPasskey(em, visit.enrolmentToken ?? '', factors.relyingParty, now);
  return page({
    title: 'Create a passkey',
    passkeys: true,
    body: html`${newPasskeyForm(visit, { action: '/enrol/passkey', state, options })}
      <p>${otherMethod}</p>`,
  });
}
