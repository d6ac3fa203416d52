import { codeAt } from '#test/people.ts';
import { chooseApp } from '../choose-app.ts';
import { goodPassword } from '../setup.ts';
import type { JudgedPage } from './page.ts';

const signIn: NonNullable<JudgedPage['steps']> = async (page, _t, ada) => {
  await page.getByLabel('Email address').fill(ada.email);
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Your second factor' }).waitFor();
};

const choosePassword: NonNullable<JudgedPage['steps']> = async (page) => {
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Choose your second factor' }).waitFor();
};

/** Signing in, enrolling, the account, the start and the overview, and error pages. */
export const pages: readonly JudgedPage[] = [
  { route: 'showSignIn', picture: 'sign-in', path: () => '/sign-in', signedOut: true },
  {
    route: 'signIn',
    picture: 'sign-in-rejected',
    path: () => '/sign-in',
    signedOut: true,
    async steps(page) {
      await page.getByLabel('Email address').fill('nobody@example.org');
      await page.getByLabel('Password').fill('wrong-password-of-nobody');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.locator('small.problem').waitFor();
    },
  },
  { route: 'showSecondFactor', picture: 'second-factor', path: () => '/sign-in', signedOut: true, steps: signIn },
  {
    route: 'giveSecondFactor',
    picture: 'second-factor-recovery',
    path: () => '/sign-in',
    signedOut: true,
    async steps(page, t, ada) {
      await signIn(page, t, ada);
      await page.getByText('Use a recovery code').click();
      await page.getByLabel('Recovery code').fill('AAAA-BBBB');
      await page.getByRole('button', { name: 'Use recovery code' }).click();
      await page.locator('small.problem').waitFor();
    },
  },
  {
    route: 'openEnrolmentLink',
    picture: 'enrol',
    signedOut: true,
    path: async (t) => t.link(await t.make.member()),
    steps: (page) => page.getByLabel('Password').waitFor(),
  },
  { route: 'showEnrolmentLink', picture: 'enrol-link', path: () => '/enrol', signedOut: true },
  { route: 'showEnrolment', picture: 'enrol-link-over', path: () => '/enrol/step', signedOut: true },
  {
    route: 'showFactorChoice',
    picture: 'enrol-choice',
    signedOut: true,
    steps: choosePassword,
    path: async (t) => t.link(await t.make.member()),
  },
  {
    route: 'startEnrolmentTotp',
    picture: 'enrol-totp',
    signedOut: true,
    path: async (t) => t.link(await t.make.member()),
    async steps(page, t, ada) {
      await choosePassword(page, t, ada);
      await chooseApp(page);
    },
  },
  {
    route: 'enrolWithTotp',
    picture: 'enrol-done',
    signedOut: true,
    path: async (t) => t.link(await t.make.member()),
    async steps(page, t, ada) {
      await choosePassword(page, t, ada);
      const secret = await chooseApp(page);
      await page.getByLabel('Authenticator code').fill(codeAt(secret, t.now()));
      await page.getByRole('button', { name: 'Verify code' }).click();
      await page.getByRole('heading', { name: 'You’re all set' }).waitFor();
    },
  },
  {
    route: 'startEnrolmentPasskey',
    picture: 'enrol-passkey',
    signedOut: true,
    path: async (t) => t.link(await t.make.member()),
    async steps(page, t, ada) {
      await choosePassword(page, t, ada);
      await page.getByRole('button', { name: 'Use a passkey' }).click();
    },
  },
  {
    route: 'showHome',
    picture: 'organizations',
    // A member of one organization is redirected to it; a member of two chooses.
    async path(t, ada) {
      const second = await t.make.organization({ name: 'Lakeside Mediation' });
      await t.make.member({ orgId: second, userId: ada.personId });
      return '/';
    },
  },
  {
    route: 'showEnrolment',
    picture: 'enrol-join',
    // A person who signs in already joins a further organization.
    async path(t, ada) {
      const orgId = await t.make.organization({ name: 'Lakeside Mediation' });
      const status = 'invited';
      return t.link(await t.make.member({ orgId, userId: ada.personId, status, confirmed: false }));
    },
    steps: (page) => page.getByRole('button', { name: 'Join Lakeside Mediation' }).waitFor(),
  },
  { route: 'showAccount', picture: 'account', path: () => '/account' },
  {
    route: 'showAccount',
    picture: 'account-menu',
    path: () => '/account',
    steps: (page) => page.locator('details.menu summary').click(),
  },
  { route: 'showPassword', picture: 'account-password', path: () => '/account/password' },
  {
    route: 'startTotp',
    picture: 'account-add-app',
    path: () => '/account',
    async steps(page) {
      await page.getByRole('button', { name: 'Add an authenticator app' }).click();
      await page.getByRole('heading', { name: 'Add an authenticator app' }).waitFor();
    },
  },
  {
    route: 'startPasskey',
    picture: 'account-add-passkey',
    path: () => '/account',
    async steps(page) {
      await page.getByRole('button', { name: 'Add a passkey' }).click();
      await page.getByRole('heading', { name: 'Add a passkey' }).waitFor();
    },
  },
  {
    route: 'renewRecoveryCodes',
    picture: 'account-recovery-codes',
    path: () => '/account',
    async steps(page) {
      await page.getByText('Create new codes…').click();
      await page.getByRole('button', { name: 'Create recovery codes' }).click();
      await page.getByRole('heading', { name: 'Your new recovery codes' }).waitFor();
    },
  },
  {
    route: 'showAccount',
    picture: 'account-two-apps',
    async path(t, ada) {
      await t.owner.pool.query(
        `insert into second_factor
         select (jsonb_populate_record(f, jsonb_build_object('id', gen_random_uuid(), 'name', 'Tablet'))).*
           from second_factor f where f.person_id = $1`,
        [ada.personId],
      );
      return '/account';
    },
  },
  { route: 'showOverview', picture: 'overview', path: (_t, ada) => `/o/${ada.orgId}` },
  { route: 'searchOrganization', picture: 'search', path: (_t, ada) => `/o/${ada.orgId}/search?q=Ada` },
  { route: 'none', picture: 'nothing-here', path: (_t, ada) => `/o/${ada.orgId}/nothing` },
];
