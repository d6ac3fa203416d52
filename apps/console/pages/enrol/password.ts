import { z } from 'zod';
import { setEnrolmentPassword } from '#domain/identity/enrol.ts';
import type { EnrolmentDetails } from '#domain/identity/types.ts';
import { form, textField } from '../../components/form.ts';
import { passwordHint } from '../../components/password-hint.ts';
import { time } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, typedSecret } from '../../web/form.ts';
import { attributes, html } from '../../web/html.ts';
import { anyone } from '../../web/route.ts';
import type { Visit } from '../../web/visit.ts';
import { findOpenEnrolment, linkExpiredPage } from './open.ts';

/** The first step of an enrolment: a password. */
export const passwordRoutes = [
  anyone.action({
    name: 'chooseEnrolmentPassword',
    path: '/enrol/password',
    form: z.object({ password: typedSecret('a password') }),
    async act({ console, enrolmentToken }, { password }) {
      await setEnrolmentPassword(console.em, { token: enrolmentToken ?? '', password }, console.now);
      return redirect('/enrol/step');
    },
    async rerender(visit, state) {
      const enrolment = await findOpenEnrolment(visit);
      return enrolment === null ? linkExpiredPage() : passwordPage(visit, enrolment, state);
    },
  }),
];

export function passwordPage(visit: Visit, enrolment: EnrolmentDetails, state: FormState): Page {
  const { email, organizationName, kind } = enrolment;
  return page({
    title: kind === 'recover' ? 'Recover your account' : `Welcome to ${organizationName}`,
    body: html`
      <p>${
        kind === 'recover'
          ? html`When you finish, your old password and second factors are deleted. This link works for one hour,
            until ${time(enrolment.expiresAt)}.`
          : 'Choose a password first, then a second factor.'
      }</p>
      ${form(visit, {
        action: '/enrol/password',
        state,
        button: 'Continue',
        // The address is in a field so that password managers store it with the password.
        fields: html`<div class="field"><label for="field-email">Email address</label>
            <input${attributes({
              id: 'field-email',
              type: 'email',
              value: email,
              autocomplete: 'username',
              readonly: true,
            })}></div>
          ${textField(state, {
            name: 'password',
            label: 'Password',
            hint: passwordHint,
            type: 'password',
            autocomplete: 'new-password',
            autofocus: true,
          })}`,
      })}`,
  });
}
