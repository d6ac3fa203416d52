import { z } from 'zod';
import {
  completeEnrolment,
  type FirstFactor,
  startEnrolmentPasskey,
  startEnrolmentTotp,
} from '#domain/identity/enrol.ts';
import { endSession } from '#domain/identity/sessions.ts';
import { buttonForm, form, hiddenField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { codeField, passkeyForm } from '../../components/second-factor.ts';
import { recoveryCodes } from '../../components/secret.ts';
import { totpDrawnAgain, totpSetup } from '../../components/totp-setup.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm, line } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { anyone } from '../../web/route.ts';
import { parsed } from '../../web/second-factor.ts';
import type { Visit } from '../../web/visit.ts';

/**
 * The second step of an enrolment: a passkey or an authenticator app. It completes the enrolment
 * and signs the person in.
 */
export const factorRoutes = [
  anyone.action({
    name: 'startEnrolmentTotp',
    path: '/enrol/totp/start',
    form: z.object({}),
    async act(visit) {
      const { em, factors, now } = visit.console;
      const { secret, uri } = await startEnrolmentTotp(em, visit.enrolmentToken ?? '', factors, now);
      return totpPage(visit, freshForm({ secret, uri }));
    },
    redraw: factorChoicePage,
  }),

  anyone.action({
    name: 'enrolWithTotp',
    path: '/enrol/totp',
    // Secret and URI are sent back only to draw them again after a wrong code; the domain uses its
    // own, sealed copy.
    form: z.object({ code: line('the code', 20), secret: z.string().max(100), uri: z.string().max(500) }),
    act: (visit, { code }) => complete(visit, { kind: 'totp', code, name: 'Authenticator app' }),
    redraw: totpPage,
  }),

  anyone.action({
    name: 'startEnrolmentPasskey',
    path: '/enrol/passkey/start',
    form: z.object({}),
    act: (visit) => passkeyPage(visit, freshForm()),
    redraw: factorChoicePage,
  }),

  anyone.action({
    name: 'enrolWithPasskey',
    path: '/enrol/passkey',
    form: z.object({ passkey: z.string().max(20_000).default('') }),
    act: (visit, { passkey }) => complete(visit, { kind: 'passkey', response: parsed(passkey), name: 'Passkey' }),
    redraw: passkeyPage,
  }),
];

/** Draws the choice between the two. */
export function factorChoicePage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Choose your second factor',
    body: html`${state.problem === null ? nothing : notice('bad', state.problem)}
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

/**
 * Shows the recovery codes, once, and a link to the console. A session of this browser has ended.
 */
async function complete(visit: Visit, factor: FirstFactor): Promise<Page> {
  const { console, session, visitor, enrolmentToken } = visit;
  const { em, factors, now } = console;
  const input = { token: enrolmentToken ?? '', factor, visitor };
  const enrolled = await completeEnrolment(em, input, factors, now);
  const { token, email, organizationId, recoveryCodes: codes } = enrolled;
  if (session !== null && session.id !== undefined) await endSession(em, session, session.id, visitor).catch(() => {});
  return page({
    title: 'You’re all set',
    session: { token },
    browser: { token: enrolled.browser, email },
    enrolment: null,
    body: html`${recoveryCodes(codes)}
      <p class="actions">${linkButton(`/o/${organizationId}`, 'I’ve saved them')}</p>`,
  });
}

function totpPage(visit: Visit, state: FormState): Page {
  const setup = totpDrawnAgain(state);
  if (setup === null) return factorChoicePage(visit, state);
  const { secret, uri } = setup;
  return page({
    title: 'Set up your authenticator app',
    body: html`${totpSetup({ secret, uri })}
      ${form(visit, {
        action: '/enrol/totp',
        state,
        button: 'Verify code',
        fields: html`${hiddenField('secret', secret)}${hiddenField('uri', uri)}${codeField(state, 'code')}`,
        secondary: html`<a href="/enrol/step">Use another method</a>`,
      })}`,
  });
}

async function passkeyPage(visit: Visit, state: FormState): Promise<Page> {
  const { em, factors, now } = visit.console;
  const options = await startEnrolmentPasskey(em, visit.enrolmentToken ?? '', factors.relyingParty, now);
  return page({
    title: 'Create a passkey',
    passkeys: true,
    body: html`<p>Your browser asks for your fingerprint, face, PIN or security key.</p>
      ${passkeyForm(visit, {
        action: '/enrol/passkey',
        state,
        ceremony: 'create',
        options,
        field: 'passkey',
        button: 'Create passkey',
      })}
      <p><a href="/enrol/step">Use another method</a></p>`,
  });
}
