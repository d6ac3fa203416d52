import { z } from 'zod';
import { changePassword } from '#domain/identity/change-password.ts';
import {
  addPasskey,
  addTotp,
  removeFactor,
  renewRecoveryCodes,
  startPasskey,
  startTotp,
} from '#domain/identity/factors.ts';
import { endOtherSessions, endSession } from '#domain/identity/sessions.ts';
import { listSignInMethods, unlinkAccount } from '#domain/identity/sso-sign-in.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { factorSetupRoutes } from '../../components/factor-setup.ts';
import { form, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { recoveryCodes, shownBefore } from '../../components/secret.ts';
import { formatCount, passwordHint } from '../../components/text.ts';
import { type FormState, typedSecret } from '../../web/form.ts';
import { leadToProvider } from '../../web/provider-sign-in.ts';
import { NotFoundError, type Page, page, redirect } from '../../web/response.ts';
import { person } from '../../web/route.ts';
import type { PersonVisit } from '../../web/visit.ts';
import { accountPage, confinedNotice, factorKinds } from './page.ts';

export const routes = [
  person.view({ name: 'showAccount', path: '/account', show: (visit) => accountPage(visit) }),

  person.action({
    name: 'endSession',
    path: '/account/sessions/:sessionId/end',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, params, visitor }) {
      await endSession(console.database, session, params.sessionId ?? '', visitor);
      return redirect('/account', { flash: 'Session ended.' });
    },
    rerender: accountPage,
  }),

  person.action({
    name: 'endOtherSessions',
    path: '/account/sessions/end-others',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, visitor }) {
      const ended = await endOtherSessions(console.database, session, visitor);
      return redirect('/account', { flash: formatCount(ended, 'other session ended.', 'other sessions ended.') });
    },
    rerender: accountPage,
  }),

  person.action({
    name: 'linkProviderAccount',
    path: '/account/providers/:orgId/link',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { providers } = await listSignInMethods(visit.console.database, visit.session);
      const organizationId = visit.params.orgId ?? '';
      const provider = providers.find((one) => one.organizationId === organizationId);
      if (provider === undefined) throw new NotFoundError();
      const replacesAccount = provider.linkedAt !== null;
      return leadToProvider(visit, { organizationId }, { kind: 'link', session: visit.session, replacesAccount });
    },
    rerender: accountPage,
  }),

  person.action({
    name: 'unlinkProviderAccount',
    path: '/account/providers/:orgId/unlink',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, params, visitor }) {
      const unlinked = { organizationId: params.orgId ?? '', visitor };
      const { endedThis } = await unlinkAccount(console.database, session, unlinked, console.now);
      const flash = 'Account unlinked.';
      return endedThis
        ? redirect('/sign-in', { flash: `${flash} Your session began there, so it has ended.`, session: 'ended' })
        : redirect('/account', { flash });
    },
    rerender: accountPage,
  }),

  ...person.formPage({
    pageName: 'showPassword',
    name: 'changePassword',
    path: '/account/password',
    stepUp: true,
    form: z.object({
      oldPassword: typedSecret('your current password').optional(),
      newPassword: typedSecret('a new password'),
    }),
    async act({ console, session, visitor }, { oldPassword = '', newPassword }) {
      const passwords = { oldPassword, newPassword, visitor };
      const { token } = await changePassword(console.database, session, passwords, console.now);
      const flash = 'Password changed. Your other sessions have ended.';
      return redirect('/account', { session: { token }, flash });
    },
    render: passwordPage,
  }),

  ...factorSetupRoutes(person, {
    path: '/account/factors',
    stepUp: true,
    isNamed: true,
    names: ['startTotp', 'addTotp', 'startPasskey', 'addPasskey'],
    titles: { totp: 'Add an authenticator app', passkey: 'Add a passkey', verify: 'Add authenticator app' },
    breadcrumbs: [['Your account', '/account']],
    startTotp: ({ console, session }) => startTotp(console.database, session, console.factors, console.now),
    startPasskey: ({ console, session }) =>
      startPasskey(console.database, session, console.factors.relyingParty, console.now),
    async add({ console, session, visitor }, factor) {
      const { database, factors, now } = console;
      if (factor.kind === 'totp') await addTotp(database, session, { ...factor, visitor }, factors, now);
      else await addPasskey(database, session, { ...factor, visitor }, factors.relyingParty, now);
      return redirect('/account', { flash: `${factorKinds[factor.kind]} “${factor.name}” added.` });
    },
    rerender: accountPage,
  }),
  person.action({
    name: 'removeFactor',
    path: '/account/factors/:factorId/remove',
    stepUp: true,
    form: z.object({}),
    async act({ console, session, params, visitor }) {
      await removeFactor(console.database, session, { factorId: params.factorId ?? '', visitor }, console.now);
      return redirect('/account', { flash: 'Second factor removed. Your other sessions have ended.' });
    },
    rerender: accountPage,
  }),

  person.action({
    name: 'renewRecoveryCodes',
    path: '/account/recovery-codes',
    stepUp: true,
    once: true,
    form: z.object({}),
    async act({ console, session, visitor }) {
      const codes = await renewRecoveryCodes(console.database, session, visitor, console.now);
      return page({
        title: 'Your new recovery codes',
        breadcrumbs: [['Your account', '/account']],
        body: html`${recoveryCodes(codes)}<p class="actions">${linkButton('/account', 'I’ve saved them')}</p>`,
      });
    },
    again: () => shownBefore('The codes', 'If you didn’t store them, create new ones.', '/account', 'Your account'),
    rerender: accountPage,
  }),
];

async function passwordPage(visit: PersonVisit, state: FormState): Promise<Page> {
  const { hasPassword } = await listSignInMethods(visit.console.database, visit.session);
  const title = hasPassword ? 'Change password' : 'Set a password';
  const breadcrumbs = [['Your account', '/account']] as const;
  if (visit.session.isConfined) return page({ title, breadcrumbs, body: confinedNotice });
  return page({
    title,
    breadcrumbs,
    body: form(visit, {
      action: '/account/password',
      state,
      button: hasPassword ? 'Change password' : 'Set password',
      fields: html`
        ${
          hasPassword
            ? textField(state, {
                name: 'oldPassword',
                label: 'Current password',
                type: 'password',
                autocomplete: 'current-password',
              })
            : nothing
        }
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
