import { hourMs } from '#domain/contract/durations.ts';
import { readableEmail } from '#domain/contract/email.ts';
import { regions } from '#domain/contract/regions.ts';
import type { Permission } from '#domain/contract/scopes.ts';
import { sessionIdleMinutes, sessionSeenEverySeconds } from '#domain/identity/limits.ts';
import type { Session, SessionMembership } from '#domain/identity/types.ts';
import { attributes, type Child, type Html, html, nothing, trusted } from '#runtime/pages/html.ts';
import { assets } from '../web/assets.ts';
import type { Page } from '../web/response.ts';
import type { Visit } from '../web/visit.ts';
import { copyableId } from './copy.ts';
import { buttonForm } from './form.ts';
import { type IconName, icon } from './icon.ts';
import { linkButton } from './link.ts';
import { notice } from './notice.ts';

interface Section {
  label: string;
  icon: IconName;
  path: string;
  /** Any of these permissions opens it; empty: every member. */
  permissions: readonly Permission[];
}

/** The navigation of an organization. */
const sections: readonly Section[] = [
  { label: 'Overview', icon: 'overview', path: '', permissions: [] },
  { label: 'API keys', icon: 'keys', path: '/keys', permissions: ['org.keys.manage'] },
  { label: 'Webhooks', icon: 'webhooks', path: '/webhooks', permissions: ['org.webhooks.manage'] },
  { label: 'Deliveries', icon: 'deliveries', path: '/deliveries', permissions: ['org.webhooks.manage'] },
  { label: 'Members & roles', icon: 'members', path: '/members', permissions: ['org.members.read'] },
  {
    label: 'Clients & seats',
    icon: 'clients',
    path: '/clients',
    permissions: ['org.clients.read', 'org.seats.manage'],
  },
  { label: 'Usage', icon: 'usage', path: '/usage', permissions: ['org.activity.read'] },
  { label: 'Audit log', icon: 'auditLog', path: '/audit-log', permissions: ['org.activity.read'] },
  { label: 'Sign-in', icon: 'signIn', path: '/sign-in', permissions: ['org.members.manage'] },
  { label: 'Settings', icon: 'settings', path: '/settings', permissions: ['org.members.manage'] },
];

/**
 * htmx: same origin only, no style in the page, no history. `open` is the viewer's, so that no
 * update closes what they have opened.
 */
const htmxConfig = JSON.stringify({
  includeIndicatorCSS: false,
  mode: 'same-origin',
  history: false,
  defaultTimeout: 10_000,
  morphIgnore: ['data-htmx-powered', 'open'],
});

/**
 * The whole document around a page: head, navigation of the organization, what the last page had to
 * say, heading, body.
 *
 * @param loadsFiles - false for a browser whose every request is rejected: the style is in the page.
 */
export function layout(visit: Visit | null, page: Page, loadsFiles = true): Html {
  const session = visit?.session?.state === 'full' ? visit.session : null;
  const membership = session && visit && findMembership(visit, session);
  return html`<!doctype html>
<html${attributes({ lang: 'en', 'data-time-zone': membership?.timeZone })}>
  ${head(page, membership, loadsFiles)}
  <body>
    <a class="skip" href="#main">Skip to main content</a>
    <header class="top">
      <div class="brand">
        <a class="mark" href="${membership ? `/o/${membership.organizationId}` : '/'}">
          ${loadsFiles ? mark : nothing}<span>Organization console</span></a>
        ${visit ? html`<span class="region">${regions[visit.console.region].name}</span>` : nothing}
      </div>
      ${visit && session ? account(visit, membership) : nothing}
    </header>
    <div class="frame${session ? '' : ' bare'}">
      ${visit && session ? navigation(visit.path, session, membership) : nothing}
      <main id="main" tabindex="-1" class="${session ? 'wide' : 'narrow'}">
        ${page.breadcrumbs.length === 0 ? nothing : renderBreadcrumbs(page.breadcrumbs)}
        ${visit?.flash ? notice(visit.flash.kind, visit.flash.text) : nothing}
        ${pageHead(page)}
        ${page.body}
      </main>
    </div>
    <p class="visually-hidden" role="status" data-announcement></p>
    ${visit && session ? sessionEnd(session, visit.console.now()) : nothing}
  </body>
</html>`;
}

const mark = html`<img src="${assets.icon.path}" alt="" width="24" height="24">`;

function head(page: Page, membership: SessionMembership | null, loadsFiles: boolean): Html {
  const suffix = membership ? ` · ${membership.organizationName}` : '';
  return html`<head>
    <meta charset="utf-8">
    <title>${page.title}${suffix} · Organization console</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="htmx-config" content="${htmxConfig}">
    <meta name="robots" content="noindex">
    ${page.leadsTo === undefined ? nothing : html`<meta http-equiv="refresh" content="0; url=${page.leadsTo}">`}
    ${loadsFiles ? files(page) : trusted(`<style>${assets.style.body}</style>`)}
  </head>`;
}

const files = ({ passkeys }: Page): Html => html`<link rel="icon" href="${assets.icon.path}" type="image/svg+xml">
    <link rel="stylesheet" href="${assets.style.path}">
    <script src="${assets.htmx.path}" defer></script>
    ${passkeys ? html`<script src="${assets.webauthn.path}" defer></script>` : nothing}
    <script src="${assets.script.path}" defer></script>`;

/** Renders the heading of a page, with the status of what it shows and its actions beside it. */
const pageHead = ({ title, badge, actions }: Page): Html => html`<div class="page-head">
    <div class="title"><h1>${title}</h1>${badge}</div>
    ${actions ? html`<div class="actions">${actions}</div>` : nothing}
  </div>`;

/**
 * Returns the membership in the organization of the path; elsewhere the only one. Null when there
 * are several to choose from, or none.
 */
function findMembership({ params }: Visit, { memberships }: Session): SessionMembership | null {
  const [first = null, ...others] = memberships;
  return (
    memberships.find(({ organizationId }) => organizationId === params.orgId) ?? (others.length === 0 ? first : null)
  );
}

/** Renders the navigation of the organization; without one, the organizations to choose from. */
function navigation(path: string, session: Session, membership: SessionMembership | null): Html {
  if (membership === null)
    return html`<nav class="sections" aria-label="Organizations"><ul>
      ${session.memberships.map(({ organizationId, organizationName }) =>
        sectionLink(`/o/${organizationId}`, 'organization', organizationName, false),
      )}
      ${sectionLink('/account', 'account', 'Your account', path.startsWith('/account'))}</ul></nav>`;
  const base = `/o/${membership.organizationId}`;
  const isHere = (section: string) =>
    section === '' ? path === base : path === base + section || path.startsWith(`${base}${section}/`);
  const seen = sections.filter(
    ({ permissions }) => permissions.length === 0 || permissions.some((one) => membership.permissions.includes(one)),
  );
  return html`<nav class="sections" aria-label="Organization"><ul>
    ${seen.map(({ path: own, icon: name, label }) => sectionLink(base + own, name, label, isHere(own)))}</ul></nav>`;
}

const sectionLink = (href: string, name: IconName, label: string, isHere: boolean): Html =>
  html`<li><a href="${href}"${isHere ? html` aria-current="page"` : nothing}>${icon(name)}${label}</a></li>`;

/**
 * Renders what the script shows before the session ends. The last use is recorded once a minute, so
 * the session may end up to a minute earlier than this one says.
 */
function sessionEnd({ expiresAt }: Session, now: Date): Html {
  const idleMs = (sessionIdleMinutes * 60 - sessionSeenEverySeconds) * 1_000;
  const leftMs = expiresAt.getTime() - now.getTime();
  // Only in the last hour, so that a page rendered twice is the same.
  const end = leftMs > hourMs ? nothing : html` data-left-ms="${leftMs}"`;
  return html`<aside class="session-end notice notice-warning" aria-label="Your session" data-session
      data-idle-ms="${idleMs}"${end} hidden>
      <script src="${assets.session.path}" defer></script>
      <script src="${assets.stepUp.path}" defer></script>
      <p role="alert"></p>
      <button type="button">Stay signed in</button>
      <a href="/" target="_blank">Sign in in another tab</a></aside>`;
}

/** Renders the account menu: organizations, account, sign-out. */
function account(visit: Visit, here: SessionMembership | null): Html {
  const { session } = visit;
  if (session === null) return nothing;
  const others = session.memberships.filter(({ organizationId }) => organizationId !== here?.organizationId);
  const name = here ? here.organizationName : readableEmail(session.email);
  return html`<details class="menu"><summary><span>${name}</span>${icon('open')}</summary>
    <div class="menu-body">
      ${here ? html`<p class="quiet">Signed in as ${here.name}<br>${readableEmail(session.email)}</p>` : nothing}
      ${
        others.length === 0
          ? nothing
          : html`<p class="menu-heading">Switch organization</p><ul>${others.map(
              ({ organizationId, organizationName }) =>
                html`<li><a href="/o/${organizationId}">${organizationName}</a></li>`,
            )}</ul>`
      }
      <ul><li><a href="/account">Your account</a></li></ul>
      ${buttonForm(visit, { action: '/sign-out', button: 'Sign out' })}
    </div>
  </details>`;
}

function renderBreadcrumbs(breadcrumbs: Page['breadcrumbs']): Html {
  const links = breadcrumbs.map(([label, href]) => html`<li><a href="${href}">${label}</a></li>`);
  return html`<nav class="breadcrumbs" aria-label="Breadcrumbs"><ul>${links.reverse()}</ul></nav>`;
}

/** Renders the body of an error page. `requestId` is for internal errors, to quote to support. */
export function problemBody(parts: { sentence: string; next?: Child; requestId?: string; isSignedIn: boolean }): Html {
  const { sentence, next, requestId, isSignedIn } = parts;
  return html`<p>${sentence}</p>${next ? html`<p>${next}</p>` : nothing}
    ${requestId ? html`<p class="quiet">Request ID for support: ${copyableId('request ID', requestId)}</p>` : nothing}
    ${isSignedIn ? html`<p class="actions">${linkButton('/', 'Go to overview', 'secondary')}</p>` : nothing}`;
}
