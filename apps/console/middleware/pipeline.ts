import Router from '@koa/router';
import type { Middleware } from 'koa';
import { hasSecret } from '../web/form.ts';
import { NotFoundError, RequestError } from '../web/response.ts';
import type { Route } from '../web/route.ts';
import type { ConsoleState, RouteContext, RouteMiddleware, RouteState } from '../web/state.ts';
import type { ConsoleDependencies } from '../web/visit.ts';
import { readCookie } from './cookies.ts';
import {
  parseForm,
  rejectEarly,
  requireFirstUse,
  requireFormToken,
  requireSameOrigin,
  submitForm,
  validateForm,
} from './form-post.ts';
import { reserveSession, reserveShare } from './reserve-share.ts';
import { loadSession, requireMembership, requirePermission, requireSignIn } from './session.ts';
import { showPage } from './show-page.ts';
import { askFirst, respondToCheck, stepUp } from './step-up.ts';

/**
 * Mounts the routes: one router per section, each route behind the middleware that `buildPipeline`
 * lists. Paths match exactly: letter case, trailing slash, fixed words before parameters.
 *
 * @param sections - the routes of each section of the console, by its name.
 */
export function createRouters(
  sections: Readonly<Record<string, readonly Route[]>>,
  console: ConsoleDependencies,
): Middleware<ConsoleState>[] {
  const routers = Object.values(sections).map((routes) => {
    const router = new Router<RouteState>({ exclusive: 'specificity', sensitive: true, strict: true });
    for (const route of routes) router.register(route.path, [route.method], buildPipeline(route, console, hasPage));
    return router;
  });
  /** Whether a path leads to a page that can be opened. */
  function hasPage(path: string): boolean {
    return routers.some((router) => router.match(path, 'GET').route);
  }
  return [...routers.map((router) => router.routes() as Middleware), loadVisitor(console), rejectMethod];
}

/** The middleware of a route, in the order in which a request passes them. */
function buildPipeline(
  route: Route,
  console: ConsoleDependencies,
  hasPage: (path: string) => boolean,
): RouteMiddleware[] {
  const begin: RouteMiddleware = (ctx, next) => {
    Object.assign(ctx.state, { console, route, operation: route.name });
    return next();
  };
  const visit = [requireSignIn(hasPage), requireMembership, requirePermission, reserveShare];
  const session = [reserveSession, loadSession];
  // The page of a rejected id has the navigation of a session.
  if (route.method === 'GET')
    return [begin, leadToOrigin, ...session, requireIds, ...visit, ...(route.stepUp ? [askFirst] : []), showPage];

  return [
    begin,
    requireIds,
    // A form is read before anything is looked up or reserved for it, however slowly it comes.
    requireSameOrigin,
    parseForm,
    rejectEarly,
    ...session,
    ...visit,
    requireFormToken,
    // A password is not carried through a step-up, so that one comes before the form's fields.
    ...(route.stepUp && hasSecret(route.schema) ? [stepUp, validateForm] : [validateForm]),
    ...(route.stepUp && !hasSecret(route.schema) ? [stepUp] : []),
    respondToCheck,
    ...(route.once ? [requireFirstUse] : []),
    submitForm,
  ];
}

/**
 * Redirects a page that was opened as 127.0.0.1 to the console at localhost, because a form there
 * would be rejected. Other hosts may be a proxy's name for the console.
 */
const leadToOrigin: RouteMiddleware = (ctx, next) => {
  const { origin } = ctx.state.console;
  if (new URL(origin).hostname !== 'localhost' || !['127.0.0.1', '[::1]'].includes(ctx.hostname)) return next();
  ctx.redirect(origin + ctx.path + ctx.search);
};

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const segmentForm = /^[\w.~-]{1,1024}$/;

/**
 * Checks every parameter of a path, so that no statement ever sees a malformed one: those that end
 * in `Id` are UUIDs in lower case, except `personId`, which comes from the importing system. No
 * path of the console needs escapes, so none matches with them.
 *
 * @throws NotFoundError
 */
const requireIds: RouteMiddleware = (ctx, next) => {
  const { params } = ctx;
  const isPlain = (ctx.captures ?? []).every((text) => segmentForm.test(text));
  const areIds = Object.keys(params).every((name) => !isUuidName(name) || uuidForm.test(params[name] ?? ''));
  if (!isPlain || !areIds) throw new NotFoundError();
  return next();
};

const isUuidName = (name: string) => name.endsWith('Id') && name !== 'personId';

/**
 * Finds the session of a page that does not exist, so that it has the navigation. Without a
 * session's cookie, and for other methods than GET, it does nothing.
 */
const loadVisitor =
  (console: ConsoleDependencies): Middleware =>
  (context, next) => {
    if (context.method !== 'GET') return next();
    const ctx = context as unknown as RouteContext;
    const [, orgId = ''] = /^\/o\/([^/]+)/.exec(ctx.path) ?? [];
    Object.assign(ctx, { params: { orgId } });
    Object.assign(ctx.state, { console, route: { name: 'none' } });
    if (readCookie(ctx, 'session') === null) return next();
    return reserveSession(ctx, async () => void (await loadSession(ctx, next)));
  };

/**
 * Answers what no route took: 405 with `Allow` where the path has other methods, whatever the
 * method asked for (`allowedMethods` of the router answers OPTIONS with 200, and unknown methods
 * with 501).
 *
 * @throws RequestError, and NotFoundError for any other path.
 */
const rejectMethod: Middleware = (ctx) => {
  const { matched } = ctx as Partial<RouteContext>;
  const methods = new Set(matched?.flatMap((layer) => layer.methods));
  if (methods.size === 0) throw new NotFoundError();
  ctx.set('Allow', [...methods].join(', '));
  throw new RequestError(405, 'This address does not accept this method.');
};
