import { sessionAbsoluteHours, sessionIdleMinutes } from '#domain/identity/limits.ts';
import { findSession } from '#domain/identity/sessions.ts';
import type { Session, SessionMembership } from '#domain/identity/types.ts';
import { clientAddress } from '#runtime/client.ts';
import { findBrowser } from '../web/browser-cookie.ts';
import {
  type Flash,
  MissingPermissionError,
  NotFoundError,
  PasskeyNeededError,
  ProviderSessionNeededError,
  redirect,
  UnconfirmedSignInError,
} from '../web/response.ts';
import { returnPath } from '../web/return-path.ts';
import type { Route } from '../web/route.ts';
import type { RouteContext, RouteMiddleware } from '../web/state.ts';
import type { Caller, MemberVisit, PersonVisit } from '../web/visit.ts';
import { readCookie, readFlash, setCookie } from './cookies.ts';
import { formToken, isSameOrigin, randomToken } from './csrf.ts';
import { respond } from './respond.ts';

/**
 * Returns whether an open page requests a part of itself. Such a request neither extends the
 * session nor consumes the flash message.
 */
const isPartRequest = (ctx: RouteContext): boolean => ctx.get('HX-Request') !== '';

/** Returns the sender of a request, as far as the request itself shows. */
export function identifyCaller(ctx: RouteContext): Caller {
  const { trustedProxies, factors } = ctx.state.console;
  const browser = findBrowser(readCookie(ctx, 'browser'), factors.sealingKeys);
  return {
    visitor: {
      address: clientAddress(ctx.req, trustedProxies),
      userAgent: ctx.get('User-Agent').slice(0, 300),
      browser: browser?.token ?? null,
    },
    browserEmail: browser?.email ?? null,
  };
}

/**
 * Starts the visit, with the session of its cookie if there is one. A browser without a session
 * gets a random cookie to which its forms' tokens are bound.
 */
export const loadSession: RouteMiddleware = async (ctx, next) => {
  const { console, route, requestId } = ctx.state;
  const token = readCookie(ctx, 'session');
  const isPart = isPartRequest(ctx);
  const session = token === null ? null : await findSession(console.database, token, console.now(), !isPart);
  const sessionToken = session === null ? null : token;
  let mark = readCookie(ctx, 'visit');
  if (sessionToken === null && mark === null) {
    mark = randomToken();
    if (!isPart) setCookie(ctx, 'visit', mark);
  }
  ctx.state.visit = {
    console,
    route: route.name,
    requestId,
    target: ctx.url,
    path: ctx.path,
    params: ctx.params,
    ...identifyCaller(ctx),
    session,
    sessionToken,
    formToken: formToken(sessionToken ?? mark ?? ''),
    flash: isPart ? null : readFlash(ctx),
    enrolmentToken: readCookie(ctx, 'enrolment'),
    providerSignIn: readCookie(ctx, 'providerSignIn'),
    share: null,
  };
  if (session !== null) ctx.state.personId = session.personId;
  await next();
};

const sessionEnded =
  `Your session has ended. Sessions end when you sign out, after ${sessionIdleMinutes} minutes of inactivity, after ` +
  `${sessionAbsoluteHours} hours at most or sooner if your organization decides so, and when you lose access to your ` +
  'organizations.';

/**
 * Redirects a visitor without the session that the route requires to the sign-in page, and
 * remembers the page, or the page of the form, to continue at. A request for a part of a page gets
 * 401: the open page shows that itself.
 */
export const requireSignIn =
  (hasPage: (path: string) => boolean): RouteMiddleware =>
  async (ctx, next) => {
    const { route, visit } = ctx.state;
    if (isOpenTo(route, visit.session)) return next();
    ctx.state.code = 'sign_in_needed';
    if (isPartRequest(ctx)) {
      ctx.status = 401;
      ctx.body = '';
      return;
    }
    const to = route.method === 'GET' ? visit.target : formPage(ctx, hasPage);
    const query = to === null ? '' : `?to=${encodeURIComponent(to)}`;
    if (visit.session !== null) return respond(ctx, redirect(`/sign-in/second-factor${query}`));
    return respond(ctx, redirect(`/sign-in${query}`, { flash: signedOutMessage(ctx) }));
  };

const isOpenTo = ({ access }: Route, session: Session | null): boolean =>
  access === 'anyone' || session?.state === 'full' || (access === 'password' && session !== null);

/**
 * Returns the message for a person whose session has ended; null for others, and for a form of
 * another site, which comes without cookies.
 */
function signedOutMessage(ctx: RouteContext): Flash | null {
  const { route, console } = ctx.state;
  if (route.method === 'GET')
    return readCookie(ctx, 'session') === null
      ? null
      : { kind: 'warning', text: `${sessionEnded} Sign in to continue.` };
  if (!isSameOrigin(ctx.headers, console.origin)) return null;
  const text = `Nothing was changed. ${sessionEnded} Sign in, then fill in the form again.`;
  return { kind: 'warning', text };
}

/** Returns the page of a form from its `Referer`; null unless it is a page of the console. */
function formPage(ctx: RouteContext, hasPage: (path: string) => boolean): string | null {
  const { origin } = ctx.state.console;
  const referrer = URL.parse(ctx.get('Referer'));
  if (referrer === null || referrer.origin !== origin) return null;
  const path = returnPath(referrer.pathname + referrer.search, origin);
  return hasPage(referrer.pathname) && path !== '/' ? path : null;
}

/**
 * Adds the membership in the path's organization to the visit, for routes of members.
 *
 * @throws NotFoundError unless the person is an active member, also when there is no such
 * organization.
 * @throws UnconfirmedSignInError when the organization has not confirmed the member's sign-in.
 * @throws PasskeyNeededError when it requires a passkey, and the member has none.
 * @throws ProviderSessionNeededError when it requires a session of its provider.
 */
export const requireMembership: RouteMiddleware = (ctx, next) => {
  if (ctx.state.route.access !== 'member') return next();
  const visit = ctx.state.visit as PersonVisit;
  const { orgId } = visit.params;
  const { memberships, unconfirmed, closed } = visit.session;
  const organization = memberships.find(({ organizationId }) => organizationId === orgId);
  if (organization === undefined) {
    if (closed.includes(orgId ?? '')) throw new ProviderSessionNeededError();
    throw unconfirmed.includes(orgId ?? '') ? new UnconfirmedSignInError() : new NotFoundError();
  }
  if (organization.needsPasskey) throw new PasskeyNeededError();
  ctx.state.organizationId = organization.organizationId;
  ctx.state.visit = buildMemberVisit(visit, organization);
  return next();
};

function buildMemberVisit(visit: PersonVisit, organization: SessionMembership): MemberVisit {
  const { organizationId, permissions } = organization;
  const by = { personId: visit.session.personId, address: visit.visitor.address };
  return {
    ...visit,
    organization,
    organizationId,
    by,
    request: { organizationId, by },
    may: (permission) => permissions.includes(permission),
    at: (rest) => `/o/${organizationId}${rest}`,
  };
}

/** @throws MissingPermissionError when the member's roles lack the route's permission. */
export const requirePermission: RouteMiddleware = (ctx, next) => {
  const { permission } = ctx.state.route;
  if (permission !== null && !(ctx.state.visit as MemberVisit).may(permission))
    throw new MissingPermissionError(permission);
  return next();
};
