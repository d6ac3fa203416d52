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

const to = z.string().max(2_000).catch('').default('');
const given = z.string().max(20_000, 'Enter at most 20,000 characters.').default('');

/** The second step: passkey, authenticator app or recovery code. */
export const secondFactorRoutes = [
  afterPassword.view({
    name: 'showSecondFactor',
    path: '/sign-in/second-factor',
    query: z.object({ to }),
    show: (visit, query) =>
      visit.session.state === 'full' ? redirect('/') : secondFactorPage(visit, freshForm({ to: query.to })),
  }),

  afterPassword.action({
    name: 'giveSecondFactor',
    path: '/sign-in/second-factor',
    form: z.object({
      [factorFields.code]: given,
      [factorFields.passkey]: given,
      [factorFields.recoveryCode]: given,
      to,
    }),
    async act(visit, sent) {
      const taken = await consumeSecondFactor(visit, (field) => sent[field as keyof typeof sent] ?? '');
      if (taken === null)
        return secondFactorPage(visit, { ...freshForm({ to: sent.to }), problem: 'Use one of these methods.' });
      const next = returnPath(sent.to, visit.console.origin);
      const browser = taken.browser === null ? null : { token: taken.browser, email: visit.session.email };
      return redirect(next, { session: { token: taken.token }, browser, flash: flashOf(taken.left) });
    },
    redraw: secondFactorPage,
  }),
];

function flashOf(left: number | undefined): string | null {
  if (left === undefined) return null;
  return `You used a recovery code; ${
    left === 1 ? 'one is' : `${left} are`
  } left. Create new codes and add another second factor under “Your account”.`;
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
