import { z } from 'zod';
import { IdentityError } from '#domain/identity/errors.ts';
import { endSession } from '#domain/identity/sessions.ts';
import {
  chooseAccount,
  consumeWaitingSignIn,
  getWaitingSignIn,
  linkAccount,
  signInWithProvider,
} from '#domain/identity/sso-sign-in.ts';
import { html } from '#runtime/pages/html.ts';
import { form, hiddenField, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type FormState, getText, line } from '../../web/form.ts';
import { clearBegun, getOpenIdClient, leadToProvider } from '../../web/provider-sign-in.ts';
import { type Page, page, type RouteResponse, redirect } from '../../web/response.ts';
import { returnPath } from '../../web/return-path.ts';
import { anyone } from '../../web/route.ts';
import { withoutShare } from '../../web/shares.ts';
import type { Visit } from '../../web/visit.ts';

const returnTo = z.string().max(2_000).catch('').default('');

/** Signing in with the provider of an organization, and the way back from there. */
export const providerRoutes = [
  ...anyone.formPage({
    pageName: 'showOrganizationSignIn',
    name: 'startProviderSignIn',
    path: '/sign-in/organization',
    query: z.object({ to: returnTo }),
    values: ({ to }) => ({ to }),
    form: z.object({ organization: line('the short name of your organization', 255), to: returnTo }),
    act: (visit, { organization, to }) =>
      leadToProvider(
        visit,
        { slug: organization.toLowerCase() },
        { kind: 'sign_in' },
        returnPath(to, visit.console.origin),
      ),
    render: (_visit, state) => organizationPage(_visit, state),
  }),

  anyone.view({ name: 'completeProviderSignIn', path: '/sign-in/callback/:orgId', show: complete }),
];

function organizationPage(visit: Visit, state: FormState): Page {
  return page({
    title: 'Sign in with your organization',
    breadcrumbs: [['Sign in', '/sign-in']],
    body: form(visit, {
      action: '/sign-in/organization',
      state,
      button: 'Continue',
      fields: html`${hiddenField('to', getText(state, 'to'))}
        ${textField(state, {
          name: 'organization',
          label: 'Short name of your organization',
          hint: 'Your administrator knows it, for example harbor-family-law.',
          autocomplete: 'organization',
          exact: true,
          maxLength: 255,
          autofocus: true,
        })}`,
    }),
  });
}

/**
 * Takes the provider's answer. It is a GET that changes something, which no page but this browser's own begun sign-in
 * can cause. The begun sign-in is used up when the answer goes to the provider, so that it works once; while the
 * provider is busy or cannot be reached, the same answer may be tried again.
 */
async function complete(visit: Visit): Promise<RouteResponse> {
  const { console, visitor, session, providerSignIn } = visit;
  const { database, openId, now } = console;
  const token = providerSignIn ?? '';
  const response = new URL(visit.target, console.origin);
  let isConsumed = false;
  try {
    const begun = { token, state: response.searchParams.get('state') ?? '' };
    const waiting = await getWaitingSignIn(database, begun, now());
    const { providerId, linkHash, sessionId } = waiting;
    const client = await getOpenIdClient(visit, providerId);
    const consume = () => {
      isConsumed = true;
      return consumeWaitingSignIn(database, token);
    };
    const subject = await withoutShare(visit, () => openId.findSubject(client, response, waiting, consume));
    if (linkHash !== null) {
      await chooseAccount(database, { providerId, subject, linkHash }, now);
      await clearBegun(visit);
      return redirect('/enrol/factor', { providerSignIn: null });
    }
    if (sessionId !== null) {
      await linkAccount(database, { providerId, subject, sessionId, session, visitor }, now);
      await clearBegun(visit);
      return redirect('/account', { flash: 'Account linked. You can now sign in with it.', providerSignIn: null });
    }
    const started = await signInWithProvider(database, { providerId, subject, visitor }, now);
    await clearBegun(visit);
    // A new sign-in ends this browser's previous session.
    if (session !== null) await endSession(database, session, session.id, visitor);
    const query = waiting.returnTo === '/' ? '' : `?to=${encodeURIComponent(waiting.returnTo)}`;
    return redirect(`/sign-in/second-factor${query}`, { session: { token: started.token }, providerSignIn: null });
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    if (isConsumed) return { ...rejectedPage(error), providerSignIn: null };
    return isTemporary(error) ? againPage(error) : rejectedPage(error);
  }
}

const isTemporary = ({ reason }: IdentityError): boolean => reason === 'provider_unavailable' || reason === 'busy';

/** Says that the answer did not get to the provider. The begun sign-in stays for it. */
const againPage = ({ message }: IdentityError): Page =>
  page({
    title: 'Provider not available',
    status: 503,
    body: html`<p>${message}</p><p>Reload this page to try again with the same sign-in.</p>
      <p class="actions">${linkButton('/sign-in', 'Use a password', 'secondary')}</p>`,
  });

/** Says in one sentence why the answer was not accepted. */
const rejectedPage = (error: IdentityError): Page =>
  page({
    title: isTemporary(error) ? 'Provider not available' : 'You are not signed in',
    status: isTemporary(error) ? 503 : 403,
    body: html`<p>${error.message}</p>
      <p>Start again. If it fails again, ask an owner of your organization. If you have a password, you can use it
        unless your organization requires its provider.</p>
      <p class="actions">${linkButton('/sign-in/organization', 'Start again')}
        ${linkButton('/sign-in', 'Use a password', 'secondary')}</p>`,
  });
