import { z } from 'zod';
import { addPasskey, addTotp, startPasskey, startTotp } from '#domain/identity/factors.ts';
import { textField } from '../../components/form.ts';
import { newPasskeyForm } from '../../components/second-factor.ts';
import { totpDrawnAgain, totpFields, totpForm } from '../../components/totp-setup.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, line } from '../../web/form.ts';
import type { Html } from '../../web/html.ts';
import { person } from '../../web/route.ts';
import { parsePasskeyResponse } from '../../web/second-factor.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { accountPage } from './page.ts';

const name = line('a name', 100);
const breadcrumbs = [['Your account', '/account']] as const;

/** Adds a second factor in two forms: one confirms the identity, one verifies the factor. */
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
    rerender: accountPage,
  }),

  person.action({
    name: 'addTotp',
    path: '/account/factors/totp',
    stepUp: true,
    form: z.object({ name, ...totpFields }),
    async act({ console, session, visitor }, { code, name }) {
      await addTotp(console.em, session, { code, name, visitor }, console.factors, console.now);
      return redirect('/account', { flash: `Authenticator app “${name}” added.` });
    },
    rerender: totpPage,
  }),

  person.action({
    name: 'startPasskey',
    path: '/account/factors/passkey/start',
    stepUp: true,
    form: z.object({}),
    act: (visit) => passkeyPage(visit, freshForm({ name: 'Passkey' })),
    rerender: accountPage,
  }),

  person.action({
    name: 'addPasskey',
    path: '/account/factors/passkey',
    stepUp: true,
    form: z.object({ name, passkey: z.string().default('') }),
    async act({ console, session, visitor }, { name, passkey }) {
      const { em, factors, now } = console;
      await addPasskey(
        em,
        session,
        { response: parsePasskeyResponse(passkey), name, visitor },
        factors.relyingParty,
        now,
      );
      return redirect('/account', { flash: `Passkey “${name}” added.` });
    },
    rerender: passkeyPage,
  }),
];

const nameField = (state: FormState): Html => textField(state, { name: 'name', label: 'Name', maxLength: 100 });

async function totpPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const setup = totpDrawnAgain(state);
  if (setup === null)
    return accountPage(visit, { ...state, problem: state.problem ?? 'This setup has expired. Start again.' });
  return page({
    title: 'Add an authenticator app',
    breadcrumbs,
    body: totpForm(visit, setup, {
      action: '/account/factors/totp',
      state,
      button: 'Add authenticator app',
      fields: nameField(state),
    }),
  });
}

async function passkeyPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const { em, factors, now } = visit.console;
  const options = await startPasskey(em, visit.session, factors.relyingParty, now);
  return page({
    title: 'Add a passkey',
    breadcrumbs,
    passkeys: true,
    body: newPasskeyForm(visit, { action: '/account/factors/passkey', state, options, fields: nameField(state) }),
  });
}
