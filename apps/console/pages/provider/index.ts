import { z } from 'zod';
import { IdentityError } from '#domain/identity/errors.ts';
import {
  canonicalIssuer,
  findProvider,
  type ProviderDetails,
  removeProvider,
  setProvider,
  setProviderRequired,
} from '#domain/identity/sso-provider.ts';
import { checkUrl } from '#domain/webhooks/address/url.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { confirm } from '../../components/confirm.ts';
import { copyableUrl, isolatedUrl } from '../../components/copy.ts';
import { buttonForm, checkboxField, form, problemNotice, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { badge, statusNotice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import { formatCount } from '../../components/text.ts';
import { checkbox, type FormState, freshForm, line, typedSecret } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { withoutShare } from '../../web/shares.ts';
import type { MemberVisit } from '../../web/visit.ts';

const permission = 'org.members.manage';
const path = '/sign-in';
/** Characters of an issuer, as it is typed and as it is stored (`sso_provider_issuer_form`). */
const issuerMaxLength = 500;

/** The OpenID provider with which the members of an organization sign in. Owners change it. */
export const routes = [
  member.view({ name: 'showProvider', path, permission, show: (visit) => providerPage(visit) }),

  ...member.formPage({
    pageName: 'showProviderForm',
    name: 'setProvider',
    path: `${path}/provider`,
    permission,
    stepUp: true,
    async values(_query, { console, organizationId }) {
      const provider = await findProvider(console.database, organizationId);
      return provider === null ? {} : { issuer: provider.issuer, clientId: provider.clientId };
    },
    form: z.object({
      issuer: line('the issuer URL', issuerMaxLength),
      clientId: line('the client ID', 500),
      clientSecret: typedSecret('the client secret'),
      replace: checkbox,
    }),
    async act(visit, { issuer: typed, clientId, clientSecret, replace: mayReplace }) {
      const { database, factors, openId, webhookAllow, now } = visit.console;
      const { organizationId, by, session } = visit;
      const checked = checkUrl(typed, webhookAllow);
      const issuer = checked.ok ? canonicalIssuer(typed) : '';
      // Of an address of metadata, `openid-client` would not compare the issuer.
      if (
        !checked.ok ||
        checked.url.search !== '' ||
        /\/\.well-known\//.test(issuer) ||
        issuer.length > issuerMaxLength
      )
        throw new IdentityError(
          'issuer_invalid',
          'Enter the issuer URL as your provider shows it, for example https://login.example.com. Its address must ' +
            'be public.',
        );
      const client = { providerId: '', organizationId, issuer, clientId, clientSecret };
      await withoutShare(visit, () => openId.check(client));
      const chosen = { organizationId, by, session, issuer, clientId, clientSecret, mayReplace };
      await setProvider(database, chosen, factors.sealingKeys, now);
      return redirect(visit.at(path), { flash: 'Provider saved. Link your own account to try it.' });
    },
    async render(visit, state) {
      return renderForm(visit, state, (await findProvider(visit.console.database, visit.organizationId)) !== null);
    },
  }),

  member.action({
    name: 'requireProvider',
    path: `${path}/require`,
    permission,
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      await changeRequired(visit, true);
      return redirect(visit.at(path), { flash: 'Members now sign in with the provider.' });
    },
    rerender: providerPage,
  }),

  member.action({
    name: 'stopRequiringProvider',
    path: `${path}/stop-requiring`,
    permission,
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      await changeRequired(visit, false);
      return redirect(visit.at(path), { flash: 'Members can sign in with a password again.' });
    },
    rerender: providerPage,
  }),

  member.action({
    name: 'removeProvider',
    path: `${path}/remove`,
    permission,
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { console, organizationId, by, session } = visit;
      const isOwn = session.providerId !== null;
      await removeProvider(console.database, { organizationId, by, session }, console.now);
      return isOwn
        ? redirect('/sign-in', {
            flash: 'Provider removed. Your session began there, so it has ended.',
            session: 'ended',
          })
        : redirect(visit.at(path), { flash: 'Provider removed.' });
    },
    rerender: providerPage,
  }),
];

async function changeRequired(visit: MemberVisit, isRequired: boolean): Promise<void> {
  const { console, organizationId, by, session } = visit;
  await setProviderRequired(console.database, { organizationId, by, session, isRequired }, console.now);
}

const isOwner = ({ organization }: MemberVisit): boolean => organization.roleKeys.includes('owner');

/** Renders the provider of the organization, or how to set one. */
async function providerPage(visit: MemberVisit, state: FormState = freshForm()): Promise<Page> {
  const provider = await findProvider(visit.console.database, visit.organizationId);
  return page({
    title: 'Sign-in',
    actions: isOwner(visit) ? setUpButton(visit, provider) : nothing,
    body: html`${problemNotice(state)}
      <p>Members can sign in with your organization’s OpenID provider instead of a password. Their second factor stays
        the one that they set up here. The console asks it for no email addresses and no names.</p>
      ${isOwner(visit) ? nothing : statusNotice('info', 'Only an owner can change how members sign in.')}
      ${
        provider === null
          ? html`<p class="quiet">No provider. Members sign in with a password.</p>`
          : details(visit, provider)
      }`,
  });
}

const setUpButton = (visit: MemberVisit, provider: ProviderDetails | null): Html =>
  provider === null
    ? linkButton(visit.at(`${path}/provider`), 'Set up a provider')
    : linkButton(visit.at(`${path}/provider`), 'Edit provider', 'secondary');

/** The page on which a member signs in with the provider, with the short name filled in. */
const signInLink = ({ console }: MemberVisit, slug: string): string =>
  `${console.origin}/sign-in/organization?organization=${encodeURIComponent(slug)}`;

function details(visit: MemberVisit, provider: ProviderDetails): Html {
  const { slug, issuer, clientId, isRequired, linkedMembers, otherMembers } = provider;
  return html`${detailList([
    ['Sign-in link for members', copyableUrl('sign-in link', signInLink(visit, slug))],
    ['Short name', slug],
    ['Issuer', isolatedUrl(issuer)],
    ['Client ID', clientId],
    ['Redirect URI', copyableUrl('redirect URI', visit.console.openId.redirectUri(visit.organizationId))],
    ['Passwords', isRequired ? badge('info', 'Not accepted') : badge('plain', 'Accepted')],
    [
      'Linked accounts',
      html`<a href="${visit.at('/members?account=linked')}">${formatCount(linkedMembers, 'member', 'members')}</a>,
        <a href="${visit.at('/members?account=none')}">${otherMembers} with a password only</a>`,
    ],
  ])}
  ${
    isOwner(visit)
      ? html`${requiring(visit, provider)}
        ${confirm(visit, {
          summary: 'Remove provider…',
          consequences: html`<p>Linked accounts and the sessions that began at the provider end. Members without a
            password need a recovery link from support.</p>`,
          action: visit.at(`${path}/remove`),
          button: 'Remove provider',
        })}`
      : nothing
  }`;
}

/** Renders how to require the provider, or how to stop it. */
function requiring(visit: MemberVisit, { id, isRequired, otherMembers }: ProviderDetails): Html {
  if (isRequired)
    return html`<p>Sessions that began with a password do not open this organization.</p>
      ${buttonForm(visit, { action: visit.at(`${path}/stop-requiring`), button: 'Accept passwords again' })}`;
  if (visit.session.providerId !== id)
    return html`<p>To require the provider, link your own account under <a href="/account">Your account</a>, then sign
      in with it.</p>`;
  return confirm(visit, {
    summary: 'Require the provider…',
    consequences: html`<p>Sessions that began with a password no longer open this organization.
      ${
        otherMembers === 0
          ? nothing
          : html`${formatCount(otherMembers, 'member signs', 'members sign')} in with a password only. They link an
            account under “Your account”, or lose access.`
      }</p>`,
    action: visit.at(`${path}/require`),
    button: 'Require the provider',
    kind: 'primary',
  });
}

function renderForm(visit: MemberVisit, state: FormState, hasProvider: boolean): Page {
  return page({
    title: 'Sign-in provider',
    breadcrumbs: [['Sign-in', visit.at(path)]],
    body: html`<p>Register the console at your provider as a confidential web application with this redirect URI:
        ${copyableUrl('redirect URI', visit.console.openId.redirectUri(visit.organizationId))}</p>
      ${form(visit, {
        action: visit.at(`${path}/provider`),
        state,
        button: 'Save provider',
        cancel: visit.at(path),
        fields: html`
          ${textField(state, {
            name: 'issuer',
            label: 'Issuer URL',
            hint: 'For example https://login.example.com. The console reads its configuration there.',
            inputMode: 'url',
            exact: true,
            maxLength: issuerMaxLength,
          })}
          ${textField(state, { name: 'clientId', label: 'Client ID', exact: true, maxLength: 500 })}
          ${textField(state, {
            name: 'clientSecret',
            label: 'Client secret',
            hint: 'It is stored encrypted and never shown again.',
            masked: true,
            exact: true,
            maxLength: 1_000,
          })}
          ${
            hasProvider
              ? checkboxField(state, {
                  name: 'replace',
                  label: 'Replace the provider',
                  hint:
                    'Another issuer or client ID is another provider. Linked accounts and the sessions that began at ' +
                    'the old one end, and passwords are accepted until you require the new one.',
                })
              : nothing
          }`,
      })}`,
  });
}
