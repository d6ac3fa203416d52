import { z } from 'zod';
import { changePassword } from '#domain/identity/change-password.ts';
import { needsStepUp } from '#domain/identity/sessions.ts';
import { form, textField } from '../../components/form.ts';
import { passwordHint } from '../../components/password-hint.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, typedSecret } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { person } from '../../web/route.ts';
import { askStepUp } from '../../web/step-up.ts';
import type { PersonVisit } from '../../web/visit.ts';

/** Changes the person's password, and ends their other sessions. */
export const passwordRoutes = [
  person.view({
    name: 'showPassword',
    path: '/account/password',
    // The second factor comes first: a question after the form would have to contain the passwords.
    show: (visit) =>
      needsStepUp(visit.session, visit.console.now()) ? askStepUp(visit) : passwordPage(visit, freshForm()),
  }),

  person.action({
    name: 'changePassword',
    path: '/account/password',
    stepUp: true,
    form: z.object({
      oldPassword: typedSecret('your current password'),
      newPassword: typedSecret('a new password'),
    }),
    async act({ console, session, visitor }, { oldPassword, newPassword }) {
      const { token } = await changePassword(console.em, session, { oldPassword, newPassword, visitor }, console.now);
      return redirect('/account', {
        session: { token },
        flash: 'Password changed. Your other sessions have ended.',
      });
    },
    rerender: passwordPage,
  }),
];

function passwordPage(visit: PersonVisit, state: FormState): Page {
  return page({
    title: 'Change password',
    breadcrumbs: [['Your account', '/account']],
    body: form(visit, {
      action: '/account/password',
      state,
      button: 'Change password',
      fields: html`
        ${textField(state, {
          name: 'oldPassword',
          label: 'Current password',
          type: 'password',
          autocomplete: 'current-password',
        })}
        ${textField(state, {
          name: 'newPassword',
          label: 'New password',
          hint: passwordHint,
          type: 'password',
          autocomplete: 'new-password',
        })}`,
    }),
  });
}
