import { IdentityError } from '#domain/identity/errors.ts';
import { clearFailure, countFailure, providerFailure } from '#domain/identity/sign-in-failures.ts';
import { findOpenIdClient, type OpenIdClient } from '#domain/identity/sso-provider.ts';
import { type ProviderPurpose, storeWaitingSignIn } from '#domain/identity/sso-sign-in.ts';
import { html } from '#runtime/pages/html.ts';
import { type Page, page } from './response.ts';
import { withoutShare } from './shares.ts';
import type { Visit } from './visit.ts';

/**
 * Starts a sign-in at the provider of an organization, and returns the page that leads there. It is a page and no
 * redirect, because the policy of a form's page allows no form to lead to another site.
 *
 * @param by - the organization, by its id or its short name.
 * @throws IdentityError `sign_in_rejected` when it has no provider, `provider_unavailable`, `busy`,
 * `too_many_attempts`
 */
export async function leadToProvider(
  visit: Visit,
  by: { organizationId: string } | { slug: string },
  purpose: ProviderPurpose,
  returnTo = '/',
): Promise<Page> {
  const { database, factors, openId, now } = visit.console;
  // Counted until its answer is accepted, so that no stranger makes the console ask a provider with each click.
  await countFailure(database, providerFailure(visit.visitor.address), now());
  const client = await findOpenIdClient(database, by, factors.sealingKeys);
  if (client === null)
    throw new IdentityError('sign_in_rejected', 'No organization with this short name has a sign-in provider.');
  const asksForAccount = purpose.kind === 'link' && purpose.replacesAccount;
  const { url, ...challenge } = await withoutShare(visit, () => openId.begin(client, asksForAccount));
  const { providerId } = client;
  const token = await storeWaitingSignIn(database, { ...challenge, providerId, purpose, returnTo }, now());
  return page({
    title: 'Continue to your provider',
    providerSignIn: token,
    leadsTo: url.href,
    body: html`<p>You sign in at <strong>${url.host}</strong>, and come back here.</p>
      <p class="actions"><a class="button" href="${url.href}">Continue</a></p>`,
  });
}

/** Removes a begun sign-in from the count of its network, once its answer is accepted. */
export const clearBegun = ({ console, visitor }: Visit): Promise<void> =>
  clearFailure(console.database, providerFailure(visitor.address), ['network']);

/** Returns the provider that a begun sign-in is at. @throws IdentityError `sign_in_rejected` */
export async function getOpenIdClient({ console }: Visit, providerId: string): Promise<OpenIdClient> {
  const client = await findOpenIdClient(console.database, { providerId }, console.factors.sealingKeys);
  if (client === null) throw new IdentityError('sign_in_rejected', 'The organization has removed this provider.');
  return client;
}
