import { z } from 'zod';
import { addPasskey, addTotp, startPasskey, startTotp } from '#domain/identity/factors.ts';
import { form, hiddenField, textField } from '../../components/form.ts';
import { codeField, passkeyForm } from '../../components/second-factor.ts';
import { totpDrawnAgain, totpSetup } from '../../components/totp-setup.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, line } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { person } from '../../web/route.ts';
import { parsed } from '../../web/second-factor.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { accountPage } from './page.ts';

const name = line('a name', 100);
const breadcrumbs = [['Your account', '/account']] as const;

/**
 * Adds a second factor: a form that requires a fresh factor starts it, and one that verifies the
 * new factor completes it.
 */
export const addFactorRoutes = [
  person.action({
    name: 'startTotp',
    path: '/account/factors/totp/start',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { em, factors, now } = visit.console;
      const { secret, uri } = await startTotp(em, visit.session, factors, now);
      return totpPage(visit, freshForm({ name: 'Authenticator app', secret, uri }));
    },
    redraw: accountPage,
  }),

  person.action({
    name: 'addTotp',
    path: '/account/factors/totp',
    stepUp: true,
    // Secret and URI are sent back only to draw them again after a wrong code; the domain uses its
    // own, sealed copy.
    form: z.object({ name, code: line('the code', 20), secret: z.string().max(100), uri: z.string().max(500) }),
    async act({ console, session, visitor }, { code, name }) {
      await addTotp(console.em, session, { code, name, visitor }, console.factors, console.now);
      return redirect('/account', { flash: `Authenticator app “${name}” added.` });
    },
    redraw: totpPage,
  }),

  person.action({
    name: 'startPasskey',
    path: '/account/factors/passkey/start',
    stepUp: true,
    form: z.object({}),
    act: (visit) => passkeyPage(visit, freshForm({ name: 'Passkey' })),
    redraw: accountPage,
  }),

  person.action({
    name: 'addPasskey',
    path: '/account/factors/passkey',
    stepUp: true,
    form: z.object({ name, passkey: z.string().max(20_000).default('') }),
    async act({ console, session, visitor }, { name, passkey }) {
      const { em, factors, now } = console;
      await addPasskey(em, session, { response: parsed(passkey), name, visitor }, factors.relyingParty, now);
      return redirect('/account', { flash: `Passkey “${name}” added.` });
    },
    redraw: passkeyPage,
  }),
];

async function totpPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const setup = totpDrawnAgain(state);
  if (setup === null)
    return accountPage(visit, { ...state, problem: state.problem ?? 'This setup has expired. Start again.' });
  const { secret, uri } = setup;
  return page({
    title: 'Add an authenticator app',
    breadcrumbs,
    body: html`${totpSetup({ secret, uri })}
      ${form(visit, {
        action: '/account/factors/totp',
        state,
        button: 'Add authenticator app',
        fields: html`${hiddenField('secret', secret)}${hiddenField('uri', uri)}
          ${textField(state, { name: 'name', label: 'Name', maxLength: 100 })}
          ${codeField(state, 'code')}`,
      })}`,
  });
}

async function passkeyPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const { em, factors, now } = visit.console;
  const options = await startPasskey(em, visit.session, factors.relyingParty, now);
  return page({
    title: 'Add a passkey',
    breadcrumbs,
    passkeys: true,
    body: html`<p>Your browser asks for your fingerprint, face, PIN or security key.</p>
      ${passkeyForm(visit, {
        action: '/account/factors/passkey',
        state,
        ceremony: 'create',
        options,
        field: 'passkey',
        fields: textField(state, { name: 'name', label: 'Name', maxLength: 100 }),
        button: 'Create passkey',
      })}`,
  });
}
