import { z } from 'zod';
import { canonicalEmail } from '#domain/contract/email.ts';
import type { SecondFactorStep } from '#domain/identity/second-factor.ts';
import { endSession } from '#domain/identity/sessions.ts';
import { assertMayTry, signIn } from '#domain/identity/sign-in.ts';
import { html } from '#runtime/pages/html.ts';
import { buttonForm, form, hiddenField, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { secondFactorForms } from '../../components/second-factor.ts';
import { emailLine, type FormState, freshForm, getText, typedSecret } from '../../web/form.ts';
import { type Flash, type Page, page, redirect } from '../../web/response.ts';
import { returnPath } from '../../web/return-path.ts';
import { afterPassword, anyone } from '../../web/route.ts';
import { consumeSecondFactor, factorFields, findAvailableFactors } from '../../web/second-factor.ts';
import type { Caller, PersonVisit, Visit } from '../../web/visit.ts';
import { providerRoutes } from './provider.ts';

/** The path to continue at after the sign-in. */
const returnTo = z.string().max(2_000).catch('').default('');

const factor = z.string().max(20_000, 'Enter at most 20,000 characters.').default('');

/**
 * Signing in: address and password, or the provider of an organization, then passkey, authenticator app or recovery
 * code.
 */
export const routes = [
  ...providerRoutes,

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
    admit: ({ database, now }, caller, sent) =>
      assertMayTry(database, buildRequest(caller, sent.getAll('email').at(-1) ?? ''), now()),
    form: z.object({ email: emailLine('your email address'), password: typedSecret('your password'), to: returnTo }),
    async act(visit, { email, password, to }) {
      const { database, now, origin } = visit.console;
      const { token } = await signIn(database, { ...buildRequest(visit, email), password }, now);
      // A new sign-in ends this browser's previous session.
      if (visit.session !== null) await endSession(database, visit.session, visit.session.id, visit.visitor);
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
      await endSession(console.database, session, session.id, visitor);
      return redirect('/sign-in', { flash: 'You are signed out.', session: 'ended' });
    },
    rerender: (visit, state) =>
      page({
        title: 'Sign out',
        body: form(visit, { action: '/sign-out', state, button: 'Sign out' }),
      }),
  }),

  afterPassword.view({
    name: 'showSecondFactor',
    path: '/sign-in/second-factor',
    query: z.object({ to: returnTo }),
    show: (visit, query) =>
      visit.session.state === 'full' ? redirect('/') : secondFactorPage(visit, freshForm({ to: query.to })),
  }),

  afterPassword.action({
    name: 'giveSecondFactor',
    path: '/sign-in/second-factor',
    form: z.object({
      [factorFields.code]: factor,
      [factorFields.passkey]: factor,
      [factorFields.recoveryCode]: factor,
      to: returnTo,
    }),
    async act(visit, sent) {
      const completed = await consumeSecondFactor(visit, (field) => sent[field as keyof typeof sent] ?? '');
      if (completed === null)
        return secondFactorPage(visit, { ...freshForm({ to: sent.to }), problem: 'Use one of these methods.' });
      const next = returnPath(sent.to, visit.console.origin);
      const browser =
        completed.browser === null ? null : { token: completed.browser, email: findEmail(visit, completed) };
      return redirect(next, { session: { token: completed.token }, browser, flash: recoveryNote(completed.left) });
    },
    rerender: secondFactorPage,
  }),
];

/** Returns the address for whose password a browser is known from now on; null for none. */
const findEmail = ({ session, browserEmail }: PersonVisit, { isNewToken }: SecondFactorStep): string | null =>
  session.providerId === null ? session.email : isNewToken ? null : browserEmail;

/** Returns what a sign-in is counted by: its browser is a stranger's for another address. */
const buildRequest = ({ visitor, browserEmail }: Caller, email: string) => ({
  email,
  visitor: browserEmail === canonicalEmail(email) ? visitor : { ...visitor, browser: null },
});

const organizationPath = (to: string) => `/sign-in/organization${to === '' ? '' : `?to=${encodeURIComponent(to)}`}`;

function signInPage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Sign in',
    body: html`${form(visit, {
      action: '/sign-in',
      state,
      button: 'Continue',
      fields: html`${hiddenField('to', getText(state, 'to'))}
        ${textField(state, {
          name: 'email',
          label: 'Email address',
          inputMode: 'email',
          autocomplete: 'username',
          exact: true,
          maxLength: 254,
          autofocus: getText(state, 'email') === '',
        })}
        ${textField(state, {
          name: 'password',
          label: 'Password',
          type: 'password',
          autocomplete: 'current-password',
        })}`,
    })}
    <p class="or">or</p>
    <p class="actions">${linkButton(
      organizationPath(getText(state, 'to')),
      'Sign in with your organization',
      'secondary',
    )}</p>
    <p class="quiet">Signing in for the first time? Use the link that your organization sent you. If it has
      expired, ask your administrator for a new one. Lost your password or second factor? Contact support.</p>`,
  });
}

/** Returns advice after a recovery code, of which `left` remain; null when none was used. */
function recoveryNote(left: number | undefined): Flash | null {
  if (left === undefined) return null;
  const remaining = left === 1 ? 'one is left' : `${left} are left`;
  const advice = 'Create new codes and add another second factor under “Your account”.';
  return { kind: 'warning', text: `You used a recovery code; ${remaining}. ${advice}` };
}

async function secondFactorPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const factors = await findAvailableFactors(visit);
  return page({
    title: 'Your second factor',
    passkeys: factors.passkey !== null,
    status: state.problem === null ? 200 : 422,
    body: html`<p>Confirm your identity to finish signing in.</p>
      ${secondFactorForms(visit, {
        action: '/sign-in/second-factor',
        factors,
        state,
        carried: hiddenField('to', getText(state, 'to')),
      })}
      <div class="aside">${buttonForm(visit, { action: '/sign-out', button: 'Use a different account' })}</div>`,
  });
}
