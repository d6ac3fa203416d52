import { z } from 'zod';
import { buttonForm, hiddenField } from '../../components/form.ts';
import { factorFields, secondFactorForms } from '../../components/second-factor.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, textOf } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { returnPath } from '../../web/return-path.ts';
import { afterPassword } from '../../web/route.ts';
import { consumeSecondFactor, findAvailableFactors } from '../../web/second-factor.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { returnTo } from './sign-in.ts';

const factor = z.string().max(20_000, 'Enter at most 20,000 characters.').default('');

/** The second step: passkey, authenticator app or recovery code. */
export const secondFactorRoutes = [
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
      const passed = await consumeSecondFactor(visit, (field) => sent[field as keyof typeof sent] ?? '');
      if (passed === null)
        return secondFactorPage(visit, { ...freshForm({ to: sent.to }), problem: 'Use one of these methods.' });
      const next = returnPath(sent.to, visit.console.origin);
      const browser = passed.browser === null ? null : { token: passed.browser, email: visit.session.email };
      return redirect(next, { session: { token: passed.token }, browser, flash: recoveryNote(passed.left) });
    },
    rerender: secondFactorPage,
  }),
];

/** Returns advice after a recovery code, of which `left` remain; null when none was used. */
function recoveryNote(left: number | undefined): string | null {
  if (left === undefined) return null;
  const remaining = left === 1 ? 'one is left' : `${left} are left`;
  return `You used a recovery code; ${remaining}. Create new codes and add another second factor under “Your account”.`;
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
        carried: hiddenField('to', textOf(state, 'to')),
      })}
      <div class="aside">${buttonForm(visit, { action: '/sign-out', button: 'Use a different account' })}</div>`,
  });
}
