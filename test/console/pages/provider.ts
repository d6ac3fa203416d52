import { seal } from '#domain/encryption/envelope.ts';
import { providerRow } from '#domain/identity/sso-provider.ts';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import type { JudgedPage } from './page.ts';

/** Gives the organization a provider, once. */
export async function addProvider(t: ConsoleInstallation, { orgId }: Pick<Enrolled, 'orgId'>): Promise<void> {
  const id = crypto.randomUUID();
  const sealed = seal('a-secret', providerRow(id), t.config.factors.sealingKeys);
  await t.owner.pool.query(
    `insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     values ($1, $2, 'https://login.harbor-family-law.example.com/tenant', 'org-console', $3, false, now())
     on conflict do nothing`,
    [id, orgId, sealed],
  );
}

/** Links an account of it to a member, once. */
async function linkAccount(t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  await addProvider(t, ada);
  await t.owner.pool.query(
    `insert into sso_subject (provider_id, subject, person_id, created_at)
     select id, 'account-1', $2, now() from sso_provider where organization_id = $1 on conflict do nothing`,
    [ada.orgId, ada.personId],
  );
}

/** Signing in with the organization's provider, and the page on which owners set it. */
export const pages: readonly JudgedPage[] = [
  {
    route: 'showOrganizationSignIn',
    picture: 'sign-in-organization',
    path: () => '/sign-in/organization',
    signedOut: true,
  },
  {
    route: 'startProviderSignIn',
    picture: 'sign-in-organization-unknown',
    path: () => '/sign-in/organization',
    signedOut: true,
    async steps(page) {
      await page.getByLabel('Short name').fill('no-such-organization');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.locator('small.problem').waitFor();
    },
  },
  {
    route: 'completeProviderSignIn',
    picture: 'sign-in-rejected-answer',
    path: (_t, { orgId }) => `/sign-in/callback/${orgId}?code=x&state=y`,
    signedOut: true,
  },
  { route: 'showProvider', picture: 'provider-none', path: (_t, { orgId }) => `/o/${orgId}/sign-in` },
  {
    route: 'showProviderForm',
    picture: 'provider-form',
    path: (_t, { orgId }) => `/o/${orgId}/sign-in/provider`,
  },
  {
    route: 'showProvider',
    picture: 'provider',
    async path(t, ada) {
      await addProvider(t, ada);
      return `/o/${ada.orgId}/sign-in`;
    },
  },
  {
    route: 'showProvider',
    picture: 'provider-to-require',
    async path(t, ada) {
      await addProvider(t, ada);
      await t.owner.pool.query(
        `update console_session set provider_id = (select id from sso_provider where organization_id = $1)
         where person_id = $2 and state = 'full'`,
        [ada.orgId, ada.personId],
      );
      return `/o/${ada.orgId}/sign-in`;
    },
  },
  {
    route: 'showProvider',
    picture: 'provider-required',
    async path(t, ada) {
      await addProvider(t, ada);
      await t.owner.pool.query('update sso_provider set is_required = true where organization_id = $1', [ada.orgId]);
      return `/o/${ada.orgId}/sign-in`;
    },
  },
  {
    route: 'showEnrolment',
    picture: 'enrol-with-provider',
    signedOut: true,
    async path(t, ada) {
      await addProvider(t, ada);
      await t.owner.pool.query('update sso_provider set is_required = false where organization_id = $1', [ada.orgId]);
      await t.owner.pool.query('update console_session set provider_id = null where person_id = $1', [ada.personId]);
      return t.link(await t.make.member({ orgId: ada.orgId, status: 'invited' }));
    },
    steps: (page) => page.getByRole('button', { name: 'Use your account at' }).waitFor(),
  },
  {
    route: 'showProviderForm',
    picture: 'provider-form-edit',
    async path(t, ada) {
      await addProvider(t, ada);
      return `/o/${ada.orgId}/sign-in/provider`;
    },
  },
  {
    route: 'listMembers',
    picture: 'members-linked',
    async path(t, ada) {
      await linkAccount(t, ada);
      return `/o/${ada.orgId}/members?account=linked`;
    },
  },
  {
    route: 'showMember',
    picture: 'member-linked',
    async path(t, ada) {
      await linkAccount(t, ada);
      return `/o/${ada.orgId}/members/person/${ada.personId}`;
    },
  },
  {
    route: 'showAccount',
    picture: 'account-confined',
    async path(t, ada) {
      await linkAccount(t, ada);
      await t.make.member({ userId: ada.personId });
      await t.owner.pool.query(
        `update console_session set provider_id = (select id from sso_provider where organization_id = $1)
         where person_id = $2 and state = 'full'`,
        [ada.orgId, ada.personId],
      );
      return '/account';
    },
    steps: (page) => page.getByText('This session began at an organization’s provider').waitFor(),
  },
  {
    route: 'showAccount',
    picture: 'account-with-provider',
    async path(t, ada) {
      await linkAccount(t, ada);
      await t.owner.pool.query('update console_session set provider_id = null where person_id = $1', [ada.personId]);
      await t.owner.pool.query(`update membership set status = 'left' where person_id = $1 and organization_id <> $2`, [
        ada.personId,
        ada.orgId,
      ]);
      return '/account';
    },
  },
];
