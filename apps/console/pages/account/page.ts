import { readableEmail } from '#domain/contract/email.ts';
import { listFactors } from '#domain/identity/factors.ts';
import { sessionAbsoluteHours } from '#domain/identity/limits.ts';
import { listSessions } from '#domain/identity/sessions.ts';
import { listSignInMethods, type SignInMethods } from '#domain/identity/sso-sign-in.ts';
import type { FactorRow, SessionRow } from '#domain/identity/types.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { confirm } from '../../components/confirm.ts';
import { buttonForm, problemNotice } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { badge, notice } from '../../components/notice.ts';
import { detailList, table } from '../../components/table.ts';
import { formatCount } from '../../components/text.ts';
import { relativeTime, time } from '../../components/time.ts';
import { closedNotice, unconfirmedNotice } from '../../components/unconfirmed.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page } from '../../web/response.ts';
import type { PersonVisit } from '../../web/visit.ts';

/** Renders the person's account. `state` is that of a rejected form; its problem is at the top. */
export async function accountPage(visit: PersonVisit, state: FormState = freshForm()): Promise<Page> {
  const { session, console } = visit;
  const { factors, recoveryCodesLeft } = await listFactors(console.database, session);
  const methods = await listSignInMethods(console.database, session);
  return page({
    title: 'Your account',
    body: html`${problemNotice(state)}
      ${detailList([
        ['Name', [...new Set(session.memberships.map(({ name }) => name))].join(', ')],
        ['Email address', readableEmail(session.email)],
        ['Organizations', organizationList(visit)],
      ])}
      ${session.unconfirmed.length === 0 ? nothing : unconfirmedNotice(session.unconfirmed.length)}
      ${session.closed.length === 0 ? nothing : closedNotice(session.closed.length)}
      ${session.isConfined ? confinedNotice : nothing}
      ${factorsSection(visit, factors)}
      ${recoverySection(visit, recoveryCodesLeft)}
      ${session.isConfined ? nothing : passwordSection(methods)}
      ${methods.providers.length === 0 ? nothing : providersSection(visit, methods.providers)}
      ${await sessionsSection(visit)}`,
  });
}

/** Lists the person's organizations with links to emails, and to leave. Some roles do not see the members page. */
const organizationList = ({ session }: PersonVisit): Html =>
  html`<ul class="plain-list">${session.memberships.map(
    ({ organizationId, organizationName }) =>
      html`<li><bdi>${organizationName}</bdi> ·
        <a href="/o/${organizationId}/notifications">Emails<span class="visually-hidden"> of
        ${organizationName}</span></a> ·
        <a href="/o/${organizationId}/leave">Leave<span class="visually-hidden"> ${organizationName}</span>…</a></li>`,
  )}</ul>`;

/** Says why a session that began at a provider lacks the forms that change how its person signs in elsewhere. */
export const confinedNotice = notice(
  'info',
  'This session began at an organization’s provider, and you sign in to other organizations too. To change your ' +
    'password, second factors or recovery codes, sign out, then sign in with your password. If you have none, ' +
    'contact support.',
);

const passwordSection = ({ hasPassword }: SignInMethods): Html =>
  html`<section aria-labelledby="password"><h2 id="password">Password</h2>
    <p>${hasPassword ? '' : 'You have no password: you sign in with your organization. '}Changing your
      password ends your other sessions.</p>
    <p class="actions">${linkButton(
      '/account/password',
      hasPassword ? 'Change password' : 'Set a password',
      'secondary',
    )}</p></section>`;

export const factorKinds = { totp: 'Authenticator app', passkey: 'Passkey' } as const;

/** Renders a person's second factors, with forms to add and to remove them. */
function factorsSection(visit: PersonVisit, factors: readonly FactorRow[]): Html {
  return html`<section aria-labelledby="factors"><h2 id="factors">Second factors</h2>
    <p>Add at least two, so that you can sign in if you lose one. A passkey is faster than a code and resists
      phishing.</p>
    ${table<FactorRow>({
      caption: 'Your second factors',
      columns: [
        { heading: 'Name', main: true, cell: ({ name }) => name },
        { heading: 'Type', cell: ({ kind }) => factorKinds[kind] },
        { heading: 'Added', cell: ({ createdAt }) => time(createdAt) },
        { heading: 'Last used', cell: ({ lastUsedAt }) => relativeTime(lastUsedAt, 'Never') },
      ],
      rows: factors,
      actions: visit.session.isConfined
        ? null
        : ({ id, name }) =>
            factors.length === 1
              ? html`<span class="quiet">Required</span>`
              : confirm(visit, {
                  summary: 'Remove…',
                  about: name,
                  consequences: html`<p>You can no longer sign in with “${name}”. Your other sessions end.</p>`,
                  action: `/account/factors/${id}/remove`,
                  button: `Remove ${name}`,
                }),
    })}
    ${
      visit.session.isConfined
        ? nothing
        : html`<div class="actions">
            ${buttonForm(visit, { action: '/account/factors/passkey/start', button: 'Add a passkey' })}
            ${buttonForm(visit, { action: '/account/factors/totp/start', button: 'Add an authenticator app' })}
          </div>`
    }</section>`;
}

/** Renders the providers of the person's organizations, with forms that link and unlink an account. */
function providersSection(visit: PersonVisit, providers: SignInMethods['providers']): Html {
  return html`<section aria-labelledby="providers"><h2 id="providers">Sign in with your organization</h2>
    <p>Link your account at an organization’s provider to sign in with it instead of your password. Your second factor
      stays the same.</p>
    ${table<SignInMethods['providers'][number]>({
      caption: 'Sign-in providers of your organizations',
      columns: [
        { heading: 'Organization', main: true, cell: ({ organizationName }) => html`<bdi>${organizationName}</bdi>` },
        { heading: 'Provider', cell: ({ issuer }) => new URL(issuer).host },
        {
          heading: 'Account',
          cell: ({ linkedAt }) =>
            linkedAt === null ? badge('plain', 'Not linked') : html`${badge('good', 'Linked')} ${time(linkedAt)}`,
        },
      ],
      rows: providers,
      actions: ({ organizationId, organizationName, isRequired, linkedAt }) => {
        const about = `at ${organizationName}`;
        const path = `/account/providers/${organizationId}`;
        const link = {
          action: `${path}/link`,
          about,
          button: linkedAt === null ? 'Link account' : 'Link another account',
        };
        return html`${buttonForm(visit, link)}${
          linkedAt === null
            ? nothing
            : confirm(visit, {
                summary: 'Unlink…',
                about,
                consequences: html`<p>You can no longer sign in with this account. Sessions that began with it
                  end.${isRequired ? ' The organization opens again once you have linked an account.' : ''}</p>`,
                action: `${path}/unlink`,
                button: 'Unlink account',
              })
        }`;
      },
    })}</section>`;
}

/** Renders how many recovery codes are left, with a form to create new ones. */
function recoverySection(visit: PersonVisit, left: number): Html {
  return html`<section aria-labelledby="recovery"><h2 id="recovery">Recovery codes</h2>
    ${left <= 3 ? notice('warning', fewLeft(left)) : nothing}
    <p>${left} unused. Each replaces your second factor once.</p>
    ${
      visit.session.isConfined
        ? nothing
        : confirm(visit, {
            summary: 'Create new codes…',
            consequences: html`<p>Your current recovery codes stop working.</p>`,
            action: '/account/recovery-codes',
            button: 'Create recovery codes',
            kind: 'primary',
          })
    }</section>`;
}

const fewLeft = (left: number): string =>
  left === 0
    ? 'You have no recovery codes left.'
    : `You have ${formatCount(left, 'recovery code', 'recovery codes')} left.`;

/** Renders a person's sessions, with forms to end them. */
async function sessionsSection(visit: PersonVisit): Promise<Html> {
  const { console, session } = visit;
  const sessions = await listSessions(console.database, session, console.now());
  return html`<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>
    <p>A session ends after 30 minutes of inactivity or after ${sessionAbsoluteHours} hours, which an organization’s
      settings can shorten. If you don’t recognize one, end it and change your
      password.${session.isConfined ? ' Sessions that began elsewhere are not listed.' : ''}</p>
    ${table<SessionRow>({
      caption: 'Your sessions',
      columns: [
        {
          heading: 'Browser',
          main: true,
          cell: ({ userAgent, isThis }) =>
            html`${describeBrowser(userAgent)} ${isThis ? badge('good', 'This browser') : nothing}`,
        },
        { heading: 'IP address', cell: ({ address }) => address ?? '–' },
        { heading: 'Signed in', cell: ({ createdAt }) => time(createdAt) },
        { heading: 'Last used', cell: ({ lastSeenAt }) => relativeTime(lastSeenAt) },
      ],
      rows: sessions,
      actions: ({ id, userAgent, isThis }) =>
        buttonForm(visit, {
          action: isThis ? '/sign-out' : `/account/sessions/${id}/end`,
          button: isThis ? 'Sign out' : 'End session',
          about: `the session of ${describeBrowser(userAgent)}`,
        }),
    })}
    ${
      sessions.length > 1
        ? buttonForm(visit, { action: '/account/sessions/end-others', button: 'End other sessions' })
        : nothing
    }
  </section>`;
}

/** Texts in User-Agent headers. The first match applies, because most headers contain several. */
const browsers = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
] as const;
const systems = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
] as const;

/** Describes a browser by its User-Agent header, which can be false: `Firefox on Windows`. */
function describeBrowser(userAgent: string): string {
  const browser = browsers.find(([form]) => form.test(userAgent))?.[1];
  const system = systems.find(([form]) => form.test(userAgent))?.[1];
  if (browser === undefined) return userAgent.split(/[ /(]/)[0] || 'Unknown browser';
  return system === undefined ? browser : `${browser} on ${system}`;
}
