import { sessionAbsoluteHours, sessionIdleMinutes } from '#domain/identity/limits.ts';
import { findSession } from '#domain/identity/sessions.ts';
import type { Session } from '#domain/identity/types.ts';
import { clientAddress } from '#runtime/address.ts';
import { NotFound, PermissionNeeded, redirect, SignInUnconfirmed } from './answer.ts';
import { readBrowserToken } from './browser-cookie.ts';
import { readCookie, setCookie } from './cookies.ts';
import { formToken, isSameOrigin, randomMark } from './forgery.ts';
import { respond } from './respond.ts';
import { returnPath } from './return-path.ts';
import type { Route } from './route.ts';
import type { RouteContext, RouteMiddleware } from './state.ts';
import type { Caller, MemberVisit, PersonVisit } from './visit.ts';

/**
 * Whether a page asks for a part of itself, as `live` does, by itself: an open page must not
 * outlive its person by that, and nobody reads what else would be told.
 */
const isPartRequest = (ctx: RouteContext): boolean => ctx.get('HX-Request') !== '';

/** Who sends a request, as far as the request itself tells. */
export function callerOf(ctx: RouteContext): Caller {
  const browserCookie = readCookie(ctx, 'browser');
  return {
    visitor: {
      address: clientAddress(ctx.req, ctx.state.console.trustedProxies),
      userAgent: ctx.get('User-Agent').slice(0, 300),
      browser: readBrowserToken(browserCookie),
    },
    browserCookie,
  };
}

/**
 * Begins the visit, with the session of its cookie when there is one. A browser without a session
 * gets a random mark for its forms' tokens to be bound to.
 */
export const loadSession: RouteMiddleware = async (ctx, next) => {
  const { console, route, requestId } = ctx.state;
  const token = readCookie(ctx, 'session');
  const isPart = isPartRequest(ctx);
  const session = token === null ? null : await findSession(console.em.fork(), token, console.now(), !isPart);
  const sessionToken = session === null ? null : token;
  let mark = readCookie(ctx, 'visit');
  if (sessionToken === null && mark === null) {
    mark = randomMark();
    if (!isPart) setCookie(ctx, 'visit', mark);
  }
  const flash = isPart ? null : readCookie(ctx, 'flash');
  ctx.state.visit = {
    console,
    route: route.name,
    requestId,
    target: ctx.url,
    path: ctx.path,
    params: ctx.params,
    ...callerOf(ctx),
    session,
    sessionToken,
    formToken: formToken(sessionToken ?? mark ?? ''),
    flash: flash === null ? null : decodeText(flash),
    enrolmentToken: readCookie(ctx, 'enrolment'),
  };
  if (session !== null) ctx.state.personId = session.personId;
  await next();
};

const sessionsEnd = `Sessions end after ${sessionIdleMinutes} minutes of inactivity, and after ${sessionAbsoluteHours} hours at most.`;
/** What the sign-in page says after a session has ended, by what was asked for. */
const signedOut = {
  page: `Your session has ended. ${sessionsEnd} Sign in to continue where you were.`,
  form: `Your session had ended, so nothing was changed. ${sessionsEnd} Sign in to return to the form.`,
};

/**
 * Sends a visitor without the session that the route's access asks for to the sign-in page. What
 * they asked for, or the page of the form that they sent, is kept for afterwards. A part of a page
 * is answered 401 instead: its page says itself that it stands still.
 */
export const requireSignIn =
  (hasPage: (path: string) => boolean): RouteMiddleware =>
  (ctx, next) => {
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
  access === 'anyone' || session?.state === 'full' || (access === 'passed' && session !== null);

/**
 * What the sign-in page says to a person whose session has ended; null for all others, and for
 * another site's form, which comes without the cookies of the person who is signed in.
 */
function signedOutMessage(ctx: RouteContext): string | null {
  const { route, console } = ctx.state;
  if (route.method === 'GET') return readCookie(ctx, 'session') === null ? null : signedOut.page;
  return isSameOrigin(ctx.headers, console.origin) ? signedOut.form : null;
}

/**
 * The page that a form stood in, as its browser says; null when that is no page of the console that
 * can be opened again.
 */
function formPage(ctx: RouteContext, hasPage: (path: string) => boolean): string | null {
  const { origin } = ctx.state.console;
  const referrer = URL.parse(ctx.get('Referer'));
  if (referrer === null || referrer.origin !== origin) return null;
  const path = returnPath(referrer.pathname + referrer.search, origin);
  return hasPage(referrer.pathname) && path !== '/' ? path : null;
}

/**
 * Makes the visit one of a member of the organization in the path, for routes that ask for it.
 *
 * @throws NotFound for an organization that the person is no active member of, as for one that does
 * not exist.
 * @throws SignInUnconfirmed for one whose active member they are, and that has not confirmed their
 * sign-in.
 */
export const requireMembership: RouteMiddleware = (ctx, next) => {
  if (ctx.state.route.access !== 'member') return next();
  const visit = ctx.state.visit as PersonVisit;
  const { orgId } = visit.params;
  const { memberships, unconfirmed } = visit.session;
  const organization = memberships.find(({ organizationId }) => organizationId === orgId);
  if (organization === undefined) throw unconfirmed.includes(orgId ?? '') ? new SignInUnconfirmed() : new NotFound();
  ctx.state.organizationId = organization.organizationId;
  const member: MemberVisit = {
    ...visit,
    organization,
    by: { personId: visit.session.personId, address: visit.visitor.address },
    may: (permission) => organization.permissions.includes(permission),
    at: (rest) => `/o/${organization.organizationId}${rest}`,
  };
  ctx.state.visit = member;
  return next();
};

/** @throws PermissionNeeded when the member's roles lack what the route asks for. */
export const requirePermission: RouteMiddleware = (ctx, next) => {
  const { permission } = ctx.state.route;
  if (permission !== null && !(ctx.state.visit as MemberVisit).may(permission)) throw new PermissionNeeded(permission);
  return next();
};

function decodeText(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
