import { z } from 'zod';
import { setEnrolmentPassword } from '#domain/identity/enrol.ts';
import type { EnrolmentDetails } from '#domain/identity/types.ts';
import { form, textField } from '../../components/form.ts';
import { passwordHint } from '../../components/password-hint.ts';
import { time } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, typedSecret } from '../../web/form.ts';
import { attributes, type Html, html } from '../../web/html.ts';
import { anyone } from '../../web/route.ts';
import type { Visit } from '../../web/visit.ts';
import { findOpenEnrolment, linkExpiredPage } from './open.ts';

/** The first page of a link: a password, or the way to sign in instead. */
export const passwordRoutes = [
  anyone.action({
    name: 'chooseEnrolmentPassword',
    path: '/enrol/password',
    form: z.object({ password: typedSecret('a password') }),
    async act({ console, enrolmentToken }, { password }) {
      await setEnrolmentPassword(console.em, { token: enrolmentToken ?? '', password }, console.now);
      return redirect('/enrol/factor');
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
      <p>${kind === 'recover' ? recoveryText(enrolment) : invitationText(visit)}</p>
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

const recoveryText = ({ expiresAt }: EnrolmentDetails): Html =>
  html`When you finish, your old password and second factors are deleted. This link works for one hour,
    until ${time(expiresAt)}.`;

/** The same for every person of the link, so it does not say whether they can sign in already. */
function invitationText({ session }: Visit): Html {
  const otherwise = 'Otherwise choose a password, then a second factor.';
  return session?.state === 'full'
    ? html`You are signed in as ${session.email}, and this invitation is for another person. If you can sign in as that
        person, sign out, sign in and open the link again. ${otherwise}`
    : html`If you can already sign in to this console, <a href="/sign-in?to=%2Fenrol%2Fstep">sign in to join</a>.
        ${otherwise}`;
}
