import { z } from 'zod';
import { IdentityError } from '#domain/identity/errors.ts';
import { endSession } from '#domain/identity/sessions.ts';
import {
  chooseAccount,
  consumeWaitingSignIn,
  getWaitingSignIn,
  linkAccount,
  type ProviderPurpose,
  signInWithProvider,
} from '#domain/identity/sso-sign-in.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { form, hiddenField, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { type FormState, getText, line } from '../../web/form.ts';
import { clearBegun, getOpenIdClient, leadToProvider } from '../../web/provider-sign-in.ts';
import { type Flash, type Page, page, type RouteResponse, redirect } from '../../web/response.ts';
import { returnPath } from '../../web/return-path.ts';
import { anyone } from '../../web/route.ts';
import { withoutShare } from '../../web/shares.ts';
import type { Visit } from '../../web/visit.ts';

const returnTo = z.string().max(2_000).catch('').default('');
const shortNameLength = 255;

/** Signing in with the provider of an organization, and the way back from there. */
export const providerRoutes = [
  ...anyone.formPage({
    pageName: 'showOrganizationSignIn',
    name: 'startProviderSignIn',
    path: '/sign-in/organization',
    // An organization sends its members a link with its name.
    query: z.object({ to: returnTo, organization: z.string().max(shortNameLength).catch('').default('') }),
    values: ({ to, organization }) => ({ to, organization }),
    form: z.object({ organization: line('the short name of your organization', shortNameLength), to: returnTo }),
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
          maxLength: shortNameLength,
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
  let purpose: ProviderPurpose['kind'] = 'sign_in';
  try {
    const begun = { token, state: response.searchParams.get('state') ?? '' };
    const waiting = await getWaitingSignIn(database, begun, now());
    const { providerId, linkHash, sessionId } = waiting;
    if (linkHash !== null) purpose = 'enrol';
    else if (sessionId !== null) purpose = 'link';
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
      const isNew = await linkAccount(database, { providerId, subject, sessionId, session, visitor }, now);
      await clearBegun(visit);
      return redirect('/account', { flash: describeLink(isNew), providerSignIn: null });
    }
    const started = await signInWithProvider(database, { providerId, subject, visitor }, now);
    await clearBegun(visit);
    // A new sign-in ends this browser's previous session.
    if (session !== null) await endSession(database, session, session.id, visitor);
    const query = waiting.returnTo === '/' ? '' : `?to=${encodeURIComponent(waiting.returnTo)}`;
    return redirect(`/sign-in/second-factor${query}`, { session: { token: started.token }, providerSignIn: null });
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    if (isConsumed) return { ...rejectedPage(error, purpose), providerSignIn: null };
    return isTemporary(error) ? againPage(error, purpose) : rejectedPage(error, purpose);
  }
}

const describeLink = (isNew: boolean): Flash =>
  isNew
    ? { kind: 'good', text: 'Account linked. You can now sign in with it.' }
    : {
        kind: 'warning',
        text: 'This account is linked already. To link another account, sign out at your provider, then try again.',
      };

const isTemporary = ({ reason }: IdentityError): boolean => reason === 'provider_unavailable' || reason === 'busy';

/** What a person can do whose account at the provider was not accepted, by what they wanted it for. */
const waysOn: Record<ProviderPurpose['kind'], { title: string; advice: string; again: Html; other: Html }> = {
  sign_in: {
    title: 'Sign-in failed',
    advice:
      'Start again. If it fails again, ask an owner of your organization. If you have a password, you can use it ' +
      'unless your organization requires its provider.',
    again: linkButton('/sign-in/organization', 'Start again'),
    other: linkButton('/sign-in', 'Use a password', 'secondary'),
  },
  link: {
    title: 'Account not linked',
    advice: 'You are still signed in. Link the account again under Your account.',
    again: linkButton('/account', 'Your account'),
    other: nothing,
  },
  enrol: {
    title: 'Account not accepted',
    advice: 'Your invitation is still valid. Try the account again, or choose a password.',
    again: linkButton('/enrol/step', 'Back to the invitation'),
    other: nothing,
  },
};

/** Says that the answer did not get to the provider. The begun sign-in stays for it. */
const againPage = ({ message }: IdentityError, purpose: ProviderPurpose['kind']): Page =>
  page({
    title: 'Provider not available',
    status: 503,
    body: html`<p>${message}</p><p>Reload this page to try again with the same sign-in.</p>
      <p class="actions">${purpose === 'sign_in' ? waysOn.sign_in.other : waysOn[purpose].again}</p>`,
  });

/** Says in one sentence why the answer was not accepted. */
function rejectedPage(error: IdentityError, purpose: ProviderPurpose['kind']): Page {
  const { title, advice, again, other } = waysOn[purpose];
  return page({
    title: isTemporary(error) ? 'Provider not available' : title,
    status: isTemporary(error) ? 503 : 403,
    body: html`<p>${error.message}</p><p>${advice}</p><p class="actions">${again} ${other}</p>`,
  });
}
