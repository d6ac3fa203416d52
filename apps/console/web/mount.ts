import type { BlockList } from 'node:net';
import type { Middleware, ParameterizedContext } from 'koa';
import { knownBrowserDays, sessionAbsoluteHours, sessionIdleMinutes } from '#domain/identity/limits.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { clientAddress } from '#runtime/address.ts';
import { truncate } from '../components/display-name.ts';
import { layout } from '../components/layout.ts';
import { type Answer, NotFound, PermissionNeeded, redirect, SignInUnconfirmed } from './answer.ts';
import { readForm } from './body.ts';
import { readBrowserToken, sealBrowserToken } from './browser-cookie.ts';
import { readCookie, setCookie } from './cookies.ts';
import { formToken, isSameOrigin, randomMark } from './forgery.ts';
import { valuesOf } from './form.ts';
import { returnPath } from './return-path.ts';
import type { Route } from './route.ts';
import { createRouter } from './router.ts';
import { sendFile } from './send-file.ts';
import type { ConsoleState } from './state.ts';
import { assertSameOrigin, takeForm } from './take-form.ts';
import type { Caller, ConsoleParts, MemberVisit, PersonVisit, Visit } from './visit.ts';

type Ctx = ParameterizedContext<ConsoleState>;

/** How long (s) a sentence for the next page waits for it. */
const flashSeconds = 60;
/**
 * How many characters of it are kept: each may take nine bytes, and browsers drop a cookie of more
 * than 4,096.
 */
const flashMaxLength = 400;
/** How long (s) an opened enrolment link is remembered. */
const enrolmentSeconds = 3600;
const browserSeconds = knownBrowserDays * 86_400;

const sessionsEnd = `A session ends after ${sessionIdleMinutes} minutes without use, and after ${sessionAbsoluteHours} hours at most.`;
/** What is said on the way to the sign-in page, by what was asked for. */
const signedOut = {
  page: `You were signed out. ${sessionsEnd} Sign in, and go on where you were.`,
  form: `You were signed out, so nothing of what you sent was done. ${sessionsEnd} Sign in, and you are back at the form.`,
};

/**
 * Whether a page asks for a part of itself, as `live` does, by itself: an open page must not
 * outlive its person by that, and nobody reads what else would be told.
 */
const asksForPart = (ctx: Ctx): boolean => ctx.get('HX-Request') !== '';

/**
 * The console's pages: the only place that knows both Koa's context and the pages.
 *
 * A request, in order: route; what the route refuses without I/O (`admit`); session; organization
 * and permission; then the page, or what `takeForm` asks of a form. What is refused on the way is
 * thrown, and drawn by `answers`.
 */
export function mountPages(deps: {
  routes: readonly Route[];
  parts: ConsoleParts;
  trustedProxies: BlockList;
}): Middleware<ConsoleState> {
  const { parts, trustedProxies } = deps;
  const find = createRouter(deps.routes);

  /**
   * This request, as far as its cookies tell who it is. A browser without a session gets a mark for
   * its forms' tokens to be bound to.
   */
  async function begin(ctx: Ctx, route: Route, params: Record<string, string>): Promise<Visit> {
    const cookies = ctx.headers.cookie;
    const token = readCookie(cookies, 'session', parts.origin);
    const isPart = asksForPart(ctx);
    const session = token === null ? null : await findSession(parts.em.fork(), token, parts.now(), !isPart);
    const sessionToken = session === null ? null : token;
    let mark = readCookie(cookies, 'visit', parts.origin);
    if (sessionToken === null && mark === null) {
      mark = randomMark();
      if (!isPart) setCookie(ctx, parts.origin, 'visit', mark);
    }
    const flash = isPart ? null : readCookie(cookies, 'flash', parts.origin);
    return {
      console: parts,
      route: route.name,
      requestId: ctx.state.requestId,
      target: ctx.url,
      path: ctx.path,
      params,
      ...callerOf(ctx),
      session,
      sessionToken,
      formToken: formToken(sessionToken ?? mark ?? ''),
      flash: flash === null ? null : decodeText(flash),
      enrolmentToken: readCookie(cookies, 'enrolment', parts.origin),
    };
  }

  function callerOf(ctx: Ctx): Caller {
    const browserCookie = readCookie(ctx.headers.cookie, 'browser', parts.origin);
    return {
      visitor: {
        address: clientAddress(ctx.req, trustedProxies),
        userAgent: ctx.get('User-Agent').slice(0, 300),
        browser: readBrowserToken(browserCookie),
      },
      browserCookie,
    };
  }

  async function answerRoute(ctx: Ctx, route: Route, params: Record<string, string>): Promise<void> {
    if (route.admit !== null) {
      assertSameOrigin(ctx, parts.origin);
      ctx.state.form = await readForm(ctx.req);
      route.admit(parts, callerOf(ctx), ctx.state.form);
    }
    const visit = await begin(ctx, route, params);
    ctx.state.visit = visit;
    if (visit.session !== null) ctx.state.personId = visit.session.personId;
    if (!mayOpen(route, visit)) {
      ctx.state.code = 'sign_in_needed';
      return toSignIn(ctx, route, visit);
    }
    if (route.access === 'member') enter(visit as PersonVisit, route, ctx.state);
    const answer = route.method === 'POST' ? await takeForm(ctx, route, visit) : await show(ctx, route, visit);
    // A step-up has made it a visit of the renewed session.
    await send(ctx, ctx.state.visit, answer);
  }

  /**
   * Where they sign in; what they asked for, or the page of the form that they sent, is kept for
   * afterwards. A part's page is not taken there: it says itself that it stands still.
   */
  function toSignIn(ctx: Ctx, route: Route, visit: Visit): Promise<void> {
    if (asksForPart(ctx)) {
      ctx.status = 401;
      ctx.body = '';
      return Promise.resolve();
    }
    const to = route.method === 'GET' ? visit.target : formPage(ctx);
    const query = to === null ? '' : `?to=${encodeURIComponent(to)}`;
    if (visit.session !== null) return send(ctx, visit, redirect(`/sign-in/second-factor${query}`));
    // Not for another site's form, which comes without the cookies of whoever is signed in.
    const wasOurs =
      route.method === 'GET'
        ? readCookie(ctx.headers.cookie, 'session', parts.origin) !== null
        : isSameOrigin(ctx.headers, parts.origin);
    const flash = wasOurs ? signedOut[route.method === 'GET' ? 'page' : 'form'] : null;
    return send(ctx, visit, redirect(`/sign-in${query}`, { flash }));
  }

  /**
   * The page that a form stood in, as its browser says; null when that is none of ours that can be
   * opened again.
   */
  function formPage(ctx: Ctx): string | null {
    const referrer = URL.parse(ctx.get('Referer'));
    if (referrer === null || referrer.origin !== parts.origin) return null;
    const path = returnPath(referrer.pathname + referrer.search, parts.origin);
    const there = find(referrer.pathname)?.routes.some(({ method }) => method === 'GET') ?? false;
    return there && path !== '/' ? path : null;
  }

  return async (ctx) => {
    const found = find(ctx.path);
    if (found === null) throw new NotFound();
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    const route = found.routes.find((each) => each.method === method);
    if (route === undefined) {
      ctx.status = 405;
      ctx.set('Allow', found.routes.map((each) => each.method).join(', '));
      return;
    }
    ctx.state.operation = route.name;
    await answerRoute(ctx, route, found.params);
  };
}

/** Whether somebody may open a route as they are; else they sign in first. */
function mayOpen({ access }: Route, { session }: Visit): boolean {
  return access === 'anyone' || session?.state === 'full' || (access === 'passed' && session !== null);
}

/**
 * Makes a person's visit one of a member.
 *
 * @throws NotFound for an organization that the person is no active member of, as for one that does
 * not exist.
 * @throws SignInUnconfirmed for one whose active member they are, and that has not confirmed their
 * sign-in.
 * @throws PermissionNeeded when the member's roles lack what the route wants.
 */
function enter(visit: PersonVisit, route: Route, state: ConsoleState): asserts visit is MemberVisit {
  const { orgId } = visit.params;
  const { memberships, unconfirmed } = visit.session;
  const organization = memberships.find(({ organizationId }) => organizationId === orgId);
  if (organization === undefined) throw unconfirmed.includes(orgId ?? '') ? new SignInUnconfirmed() : new NotFound();
  state.organizationId = organization.organizationId;
  if (route.permission !== null && !organization.permissions.includes(route.permission))
    throw new PermissionNeeded(route.permission);
  Object.assign(visit, {
    organization,
    by: { personId: visit.session.personId, address: visit.visitor.address },
    may: (permission) => organization.permissions.includes(permission),
    at: (rest) => `/o/${organization.organizationId}${rest}`,
  } satisfies Pick<MemberVisit, 'organization' | 'by' | 'may' | 'at'>);
}

async function show(ctx: Ctx, route: Route, visit: Visit): Promise<Answer> {
  // A value with NUL counts as none: PostgreSQL has no such text.
  const given = [...new URLSearchParams(ctx.querystring)].filter(([, value]) => !value.includes('\0'));
  const query = route.schema.safeParse(valuesOf(route.schema, new URLSearchParams(given)));
  if (!query.success) throw new NotFound();
  return route.run(visit, query.data);
}

async function send(ctx: Ctx, visit: Visit, answer: Answer): Promise<void> {
  if (answer.kind === 'download') return sendFile(ctx, answer, visit.console.downloads);
  const { session, enrolment, browser } = answer;
  const { origin } = visit.console;
  if (session !== null) setCookie(ctx, origin, 'session', session === 'ended' ? null : session.token);
  if (enrolment !== undefined)
    setCookie(ctx, origin, 'enrolment', enrolment, enrolment === null ? undefined : enrolmentSeconds);
  if (browser !== null) {
    const cookie = sealBrowserToken(browser.token, browser.email, visit.console.keys.tagSecrets);
    setCookie(ctx, origin, 'browser', cookie, browserSeconds);
  }
  if (answer.kind === 'redirect') {
    if (answer.flash !== null)
      setCookie(ctx, origin, 'flash', encodeURIComponent(truncate(answer.flash, flashMaxLength)), flashSeconds);
    ctx.status = 303;
    ctx.set('Location', answer.to);
    ctx.body = '';
    return;
  }
  // A HEAD shows it to nobody.
  if (visit.flash !== null && ctx.method !== 'HEAD') setCookie(ctx, origin, 'flash', null);
  // The frame's own form (signing out) would carry the token of a session that the browser no
  // longer has.
  const drawn = session === null ? visit : { ...visit, session: null };
  ctx.status = answer.status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = layout(drawn, answer).toString();
}

function decodeText(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
