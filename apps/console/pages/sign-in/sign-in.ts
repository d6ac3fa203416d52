import { z } from 'zod';
import { canonicalEmail } from '#domain/contract/email.ts';
import { endSession } from '#domain/identity/sessions.ts';
import { assertMayTry, signIn } from '#domain/identity/sign-in.ts';
import { form, hiddenField, textField } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, line, textOf, typedSecret } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { returnPath } from '../../web/return-path.ts';
import { afterPassword, anyone } from '../../web/route.ts';
import type { Caller, Visit } from '../../web/visit.ts';

/** The path to continue at after the sign-in. */
export const returnTo = z.string().max(2_000).catch('').default('');

/** The first step: address and password. */
export const signInRoutes = [
  anyone.view({
    name: 'showSignIn',
    path: '/sign-in',
    query: z.object({ to: returnTo }),
    show: (visit, query) =>
      visit.session?.state === 'full' ? redirect('/') : signInPage(visit, freshForm({ to: query.to })),
  }),

  anyone.action({
    name: 'signIn',
    path: '/sign-in',
    admit: ({ em, now }, caller, sent) => assertMayTry(em, requestOf(caller, sent.getAll('email').at(-1) ?? ''), now()),
    form: z.object({ email: line('your email address', 254), password: typedSecret('your password'), to: returnTo }),
    async act(visit, { email, password, to }) {
      const { em, now, origin } = visit.console;
      const { token } = await signIn(em, { ...requestOf(visit, email), password }, now);
      // A new sign-in ends this browser's previous session.
      if (visit.session !== null) await endSession(em, visit.session, visit.session.id, visit.visitor);
      const next = returnPath(to, origin);
      const query = next === '/' ? '' : `?to=${encodeURIComponent(next)}`;
      return redirect(`/sign-in/second-factor${query}`, { session: { token } });
    },
    rerender: signInPage,
  }),

  afterPassword.action({
    name: 'signOut',
    path: '/sign-out',
    form: z.object({}),
    async act({ console, session, visitor }) {
      await endSession(console.em, session, session.id, visitor);
      return redirect('/sign-in', { flash: 'You are signed out.', session: 'ended' });
    },
    rerender: (visit, state) =>
      page({
        title: 'Sign out',
        body: form(visit, { action: '/sign-out', state, button: 'Sign out' }),
      }),
  }),
];

/** Returns what a sign-in is counted by: its browser is a stranger's for another address. */
const requestOf = ({ visitor, browserOf }: Caller, email: string) => ({
  email,
  visitor: browserOf === canonicalEmail(email) ? visitor : { ...visitor, browser: null },
});

function signInPage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Sign in',
    body: html`${form(visit, {
      action: '/sign-in',
      state,
      button: 'Continue',
      fields: html`${hiddenField('to', textOf(state, 'to'))}
        ${textField(state, {
          name: 'email',
          label: 'Email address',
          type: 'email',
          autocomplete: 'username',
          exact: true,
          maxLength: 254,
          autofocus: textOf(state, 'email') === '',
        })}
        ${textField(state, {
          name: 'password',
          label: 'Password',
          type: 'password',
          autocomplete: 'current-password',
        })}`,
    })}
    <p class="quiet">Signing in for the first time? Use the link that your organization sent you. If it has
      expired, ask your administrator for a new one. Lost your password or second factor? Contact support.</p>`,
  });
}
