import { goodPassword } from '../../console/setup.ts';
import type { FilledForm } from './filled-form.ts';
import { organizationForms } from './organization-forms.ts';
import { webhookForms } from './webhook-forms.ts';

const password = 'quiet-lantern-otter-ballad';
const account = () => '/account';
const needsPasskey = 'a browser makes the passkey: frame.browser.test.ts and enrolment.browser.test.ts';
const needsProvider = 'continues at a provider: provider-sign-in.test.ts and provider-page.test.ts';
const needsLink = 'continues with an enrolment link: enrolment.browser.test.ts and sessions.test.ts';

/**
 * Every form of the console (by the name of its route), filled in with data of a scene. A route
 * that is missing here fails `access.test.ts`.
 */
export const filledForms: Readonly<Record<string, FilledForm>> = {
  signIn: {
    fields: ({ owner }) => ({ email: owner.email, password: goodPassword, to: '' }),
    notAlone: 'for who is not signed in: sign-in.test.ts',
  },
  signOut: { page: account },
  giveSecondFactor: {
    fields: () => ({ factorCode: '000000', factorPasskey: '', factorRecovery: '', to: '' }),
    notAlone: 'follows the password: sign-in.test.ts',
  },
  startProviderSignIn: {
    fields: () => ({ organization: 'no-such-organization', to: '' }),
    notAlone: 'for who is not signed in: provider-sign-in.test.ts',
  },
  chooseEnrolmentProvider: { notAlone: needsLink },
  linkProviderAccount: { page: account, notAlone: needsProvider },
  unlinkProviderAccount: { page: account, notAlone: 'needs a linked account: account-provider.test.ts' },
  openEnrolmentLink: { fields: () => ({ link: `#${'x'.repeat(43)}` }), notAlone: needsLink },
  joinOrganization: { notAlone: needsLink },
  setEnrolmentPassword: { fields: () => ({ password }), notAlone: needsLink },
  startEnrolmentTotp: { notAlone: needsLink },
  enrolWithTotp: { fields: () => ({ code: '000000', secret: 'SECRET', uri: 'otpauth://totp/x' }), notAlone: needsLink },
  startEnrolmentPasskey: { notAlone: needsLink },
  enrolWithPasskey: { fields: () => ({ passkey: '{}' }), notAlone: needsPasskey },
  endSession: { page: account },
  endOtherSessions: { page: account },
  changePassword: { fields: () => ({ oldPassword: goodPassword, newPassword: password }) },
  startTotp: { page: account },
  addTotp: {
    page: account,
    fields: () => ({ name: 'Tablet', code: '000000', secret: 'SECRET', uri: 'otpauth://totp/x' }),
    notAlone: 'follows startTotp: identity/factors.test.ts',
  },
  startPasskey: { page: account },
  addPasskey: { page: account, fields: () => ({ name: 'Laptop', passkey: '{}' }), notAlone: needsPasskey },
  removeFactor: { page: account },
  renewRecoveryCodes: { page: account },
  ...organizationForms,
  ...webhookForms,
};
