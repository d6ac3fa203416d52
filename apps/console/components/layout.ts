import { regions } from '#domain/contract/regions.ts';
import type { Permission } from '#domain/contract/scopes.ts';
import { sessionIdleMinutes, sessionSeenEverySeconds } from '#domain/identity/limits.ts';
import type { Session, SessionMembership } from '#domain/identity/types.ts';
import type { Page } from '../web/answer.ts';
import { assets } from '../web/assets.ts';
import { type Child, type Html, html, nothing } from '../web/html.ts';
import type { Visit } from '../web/visit.ts';
import { buttonForm } from './form.ts';
import { notice } from './notice.ts';

/** The navigation of an organization, and the permission for each entry; null: every member. */
const places: readonly { label: string; path: string; permission: Permission | null; or?: Permission }[] = [
  { label: 'Overview', path: '', permission: null },
  { label: 'API keys', path: '/keys', permission: 'org.keys.manage' },
  { label: 'Webhooks', path: '/webhooks', permission: 'org.webhooks.manage' },
  { label: 'Members & roles', path: '/members', permission: 'org.members.read' },
  { label: 'Clients & seats', path: '/clients', permission: 'org.clients.read', or: 'org.seats.manage' },
  { label: 'Activity', path: '/activity', permission: 'org.activity.read' },
];

/** htmx: same origin only, no style in the page, no history. */
const htmxConfig = 'includeIndicatorCSS:false, mode:same-origin, history:false, defaultTimeout:10000';

/**
 * The whole document around a page: head, navigation of the organization, what the last page had to
 * say, heading, body.
 */
export function layout(visit: Visit | null, page: Page): Html {
  const membership = visit === null ? null : membershipOf(visit);
  const { session } = visit ?? { session: null };
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${page.title}${membership ? ` · ${membership.organizationName}` : ''} · Organization console</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="htmx-config" content="${htmxConfig}">
    <meta name="robots" content="noindex">
    <link rel="icon" href="${assets.icon.path}" type="image/svg+xml">
    <link rel="stylesheet" href="${assets.pico.path}">
    <link rel="stylesheet" href="${assets.style.path}">
    <script src="${assets.htmx.path}" defer></script>
    ${page.passkeys ? html`<script src="${assets.webauthn.path}" defer></script>` : nothing}
    <script src="${assets.script.path}" defer></script>
  </head>
  <body>
    <a class="skip" href="#main">Skip to main content</a>
    <header class="top">
      <div class="top-line">
        <div class="brand"><a class="mark" href="${membership ? `/o/${membership.organizationId}` : '/'}"><img src="${assets.icon.path}" alt="" width="24" height="24"><span>Organization console</span></a>
          ${visit ? html`<span class="region">${regions[visit.console.region].name}</span>` : nothing}</div>
        ${visit && session?.state === 'full' ? account(visit, membership) : nothing}
      </div>
      ${visit && membership ? navigation(visit.path, membership) : nothing}
    </header>
    <main id="main" tabindex="-1" class="${session?.state === 'full' ? 'wide' : 'narrow'}">
      ${page.breadcrumbs.length === 0 ? nothing : breadcrumbsOf(page.breadcrumbs)}
      ${visit?.flash ? notice('good', visit.flash) : nothing}
      <h1>${page.title}</h1>
      ${page.body}
    </main>
    <p class="visually-hidden" role="status" data-said></p>
    ${visit && session?.state === 'full' ? sessionEnd(session, visit.console.now()) : nothing}
  </body>
</html>`;
}

/** Returns the membership in the organization of the path; null without one. */
function membershipOf(visit: Visit): SessionMembership | null {
  const { session, params } = visit;
  if (session?.state !== 'full') return null;
  return session.memberships.find(({ organizationId }) => organizationId === params.orgId) ?? null;
}

function navigation(path: string, membership: SessionMembership): Html {
  const base = `/o/${membership.organizationId}`;
  const isHere = (place: string) =>
    place === '' ? path === base : path === base + place || path.startsWith(`${base}${place}/`);
  const seen = places.filter(
    ({ permission, or = permission }) =>
      permission === null || or === null || [permission, or].some((one) => membership.permissions.includes(one)),
  );
  return html`<nav class="places" aria-label="Organization"><ul>${seen.map(
    (place) =>
      html`<li><a href="${base}${place.path}"${isHere(place.path) ? html` aria-current="page"` : nothing}>${place.label}</a></li>`,
  )}</ul></nav>`;
}

/**
 * Draws what the script shows before the session ends. The last use is recorded once a minute, so
 * the session may end up to a minute earlier than this one says.
 */
function sessionEnd({ expiresAt }: Session, now: Date): Html {
  const idleMs = (sessionIdleMinutes * 60 - sessionSeenEverySeconds) * 1_000;
  const leftMs = expiresAt.getTime() - now.getTime();
  // Only in the last hour, so that a page drawn twice is the same.
  const end = leftMs > 3_600_000 ? nothing : html` data-left-ms="${leftMs}"`;
  return html`<aside class="session-end notice notice-warning" aria-label="Your session" data-session data-idle-ms="${idleMs}"${end} hidden><script src="${assets.session.path}" defer></script>
      <p role="alert"></p><button type="button">Stay signed in</button><a href="/" target="_blank">Sign in in another tab</a></aside>`;
}

/** Draws the account menu: organizations, account, sign-out. */
function account(visit: Visit, here: SessionMembership | null): Html {
  const { session } = visit;
  if (session === null) return nothing;
  const others = session.memberships.filter(({ organizationId }) => organizationId !== here?.organizationId);
  return html`<details class="menu"><summary><span>${here ? here.organizationName : session.email}</span></summary>
    <div class="menu-body">
      ${here ? html`<p class="quiet">Signed in as ${here.name}<br>${session.email}</p>` : nothing}
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

function breadcrumbsOf(breadcrumbs: Page['breadcrumbs']): Html {
  return html`<nav class="breadcrumbs" aria-label="Breadcrumbs"><ul>${[...breadcrumbs]
    .reverse()
    .map(([label, href]) => html`<li><a href="${href}">${label}</a></li>`)}</ul></nav>`;
}

/** Draws the body of an error page. `requestId` is for internal errors, to quote to support. */
export function problemBody(parts: { sentence: string; next?: Child; requestId?: string }): Html {
  return html`<p>${parts.sentence}</p>${parts.next ? html`<p>${parts.next}</p>` : nothing}
    ${parts.requestId ? html`<p class="quiet">Request ID for support: <code>${parts.requestId}</code></p>` : nothing}`;
}
