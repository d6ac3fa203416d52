import { z } from 'zod';
import { readableEmail } from '#domain/contract/email.ts';
import { acceptEnrolment, setEnrolmentPassword } from '#domain/identity/accept-link.ts';
import { findEnrolment, type OpenEnrolment } from '#domain/identity/create-link.ts';
import { enrolmentHours } from '#domain/identity/limits.ts';
import { findLinkToken } from '#domain/identity/token.ts';
import { attributes, type Html, html, nothing } from '#runtime/pages/html.ts';
import { buttonForm, form, problemNotice, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { passwordHint } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type FormState, freshForm, line, typedSecret } from '../../web/form.ts';
import { leadToProvider } from '../../web/provider-sign-in.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { anyone, person } from '../../web/route.ts';
import type { PersonVisit, Visit } from '../../web/visit.ts';

/**
 * Opens a one-time link. Its token is the fragment of the URL, which no server receives. The
 * console's script sends it as a form; without the script, the person pastes the link. Opening does
 * not use the link up, because mail scanners open links too.
 */
export const linkRoutes = [
  ...anyone.formPage({
    pageName: 'showEnrolmentLink',
    name: 'openEnrolmentLink',
    path: '/enrol',
    form: z.object({
      link: line('the link', 300).refine(
        (text) => findLinkToken(text) !== null,
        'Paste the whole link, with everything after the # sign.',
      ),
    }),
    async act(visit, { link }) {
      const { console } = visit;
      const token = findLinkToken(link) ?? '';
      const enrolment = await findEnrolment(console.database, token, console.now());
      return enrolment === null ? linkExpiredPage(visit) : redirect('/enrol/step', { enrolment: token });
    },
    // The pasted text may be a link, so no page shows it again.
    render: (visit, state) => linkPage(visit, { ...state, values: {} }),
  }),

  anyone.view({
    name: 'showEnrolment',
    path: '/enrol/step',
    show: (visit) => openPage(visit, (enrolment) => firstPage(visit, enrolment, freshForm())),
  }),

  person.action({
    name: 'joinOrganization',
    path: '/enrol/join',
    form: z.object({}),
    async act(visit) {
      const { console, session, visitor, enrolmentToken } = visit;
      const joined = await acceptEnrolment(
        console.database,
        session,
        { token: enrolmentToken ?? '', visitor },
        console.now,
      );
      return redirect(`/o/${joined.organizationId}`, { flash: 'You have joined the organization.', enrolment: null });
    },
    rerender: (visit, state) => openPage(visit, (enrolment) => firstPage(visit, enrolment, state)),
  }),

  anyone.action({
    name: 'chooseEnrolmentProvider',
    path: '/enrol/provider',
    form: z.object({}),
    act: (visit) =>
      openPage(visit, ({ organizationId }) =>
        leadToProvider(visit, { organizationId }, { kind: 'enrol', token: visit.enrolmentToken ?? '' }),
      ),
    rerender: (visit, state) => openPage(visit, (enrolment) => passwordPage(visit, enrolment, state)),
  }),

  anyone.action({
    name: 'setEnrolmentPassword',
    path: '/enrol/password',
    form: z.object({ password: typedSecret('a password') }),
    async act({ console, enrolmentToken }, { password }) {
      await setEnrolmentPassword(console.database, { token: enrolmentToken ?? '', password }, console.now);
      return redirect('/enrol/factor');
    },
    rerender: (visit, state) => openPage(visit, (enrolment) => passwordPage(visit, enrolment, state)),
  }),
];

/**
 * Renders the first page of a link: for the signed-in person whom it invites, a button; for anyone
 * else the same page, whether its person can sign in or not. Its creator can open it too.
 */
function firstPage(visit: Visit, enrolment: OpenEnrolment, state: FormState): Page {
  const { session } = visit;
  const isInvited = enrolment.kind === 'invite' && session?.state === 'full' && session.personId === enrolment.personId;
  return isInvited ? joinPage(visit as PersonVisit, enrolment, state) : passwordPage(visit, enrolment, state);
}

function linkPage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Open your link',
    body: html`
      ${form(visit, {
        state,
        button: 'Continue',
        attributes: { 'data-fragment': 'link' },
        fields: textField(state, {
          name: 'link',
          label: 'Link',
          autocomplete: 'off',
          exact: true,
          maxLength: 300,
          hint: 'Paste the whole link that you were given, with everything after the # sign.',
        }),
      })}
      ${
        visit.enrolmentToken === null
          ? nothing
          : html`<p><a href="/enrol/step">Continue with the link that you opened before</a></p>`
      }`,
  });
}

function joinPage(visit: PersonVisit, enrolment: OpenEnrolment, state: FormState): Page {
  return page({
    title: `Join ${enrolment.organizationName}`,
    body: html`<p>You are signed in as ${readableEmail(visit.session.email)}.</p>
      ${
        visit.session.providerId === null
          ? form(visit, { action: '/enrol/join', state, button: `Join ${enrolment.organizationName}` })
          : html`${problemNotice(state)}<p>This session began at another organization’s provider. To join, sign out,
              sign in with your password, and open the link again. If you have no password, set one under
              <a href="/account/password">Your account</a> first.</p>`
      }`,
  });
}

function passwordPage(visit: Visit, enrolment: OpenEnrolment, state: FormState): Page {
  const { email, organizationName, kind } = enrolment;
  if (kind === 'invite' && enrolment.isProviderRequired)
    return page({
      title: `Welcome to ${organizationName}`,
      body: html`<p>${invitationText(visit)}</p>${problemNotice(state)}${providerButton(visit, enrolment)}`,
    });
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
              type: 'text',
              inputmode: 'email',
              value: readableEmail(email),
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
      })}
      ${
        kind === 'invite' && enrolment.issuer !== null
          ? html`<p class="or">or</p>${providerButton(visit, enrolment)}`
          : nothing
      }`,
  });
}

/** Renders the choice of the organization's provider instead of a password. */
const providerButton = (visit: Visit, { issuer }: OpenEnrolment): Html =>
  buttonForm(visit, { action: '/enrol/provider', button: `Use your account at ${new URL(issuer ?? '').host}` });

const recoveryText = ({ expiresAt }: OpenEnrolment): Html =>
  html`When you finish, your old password and second factors are deleted. This link works for one hour,
    until ${time(expiresAt)}.`;

/** The same for every person of the link, so it does not say whether they can sign in already. */
function invitationText({ session }: Visit): Html {
  const otherwise = 'Otherwise choose how you sign in, then a second factor.';
  return session?.state === 'full'
    ? html`You are signed in as ${readableEmail(session.email)}, and this invitation is for another person. If you can
        sign in as that person, sign out, sign in and open the link again. ${otherwise}`
    : html`If you can already sign in to this console, <a href="/sign-in?to=%2Fenrol%2Fstep">sign in to join</a>.
        ${otherwise}`;
}

/** Returns a page of the opened link, or says that it has expired. */
export async function openPage<A>(
  visit: Visit,
  render: (enrolment: OpenEnrolment) => A | Promise<A>,
): Promise<A | Page> {
  const { console, enrolmentToken } = visit;
  const enrolment = await findEnrolment(console.database, enrolmentToken ?? '', console.now());
  return enrolment === null ? linkExpiredPage(visit) : render(enrolment);
}

/**
 * Returns the page for a link that does not work. It is the same for an unknown, used, replaced or
 * expired link, and when its creator lost the permission. Its person may have just used it: a
 * reload of the page with the recovery codes leads here.
 */
function linkExpiredPage({ session }: Visit): Page {
  const isSignedIn = session?.state === 'full';
  return page({
    title: isSignedIn ? 'This link was used or has expired' : 'This link has expired',
    status: 410,
    body: html`${
      isSignedIn
        ? html`<p>You are signed in as ${readableEmail(session.email)}. If you have just used this link, your sign-in is
            complete. The recovery codes can’t be shown again. If you didn’t store them, create new ones under
            <a href="/account">Your account</a>.</p>`
        : nothing
    }
      <p>A link works once. An invitation works for ${enrolmentHours} hours, a link to recover an account for
      one hour. A link also stops working when a newer one is created, or when its creator loses the permission to
      invite you.</p>
      <p>If you need another link, ask your organization.</p>
      <p class="actions">${
        isSignedIn ? linkButton('/', 'Open the console') : linkButton('/sign-in', 'Sign in instead', 'secondary')
      }</p>`,
  });
}
