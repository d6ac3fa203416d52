import { knownBrowserDays, providerStepMinutes } from '#domain/identity/limits.ts';
import { layout } from '../components/layout.ts';
import { sealBrowser } from '../web/browser-cookie.ts';
import type { RouteResponse } from '../web/response.ts';
import type { RouteContext } from '../web/state.ts';
import { setCookie, setFlash } from './cookies.ts';
import { sendFile } from './send-file.ts';

/** How long (s) the sign-in that was begun at a provider is remembered. */
const providerSignInSeconds = providerStepMinutes * 60;
/** How long (s) an opened enrolment link is remembered. */
const enrolmentSeconds = 3_600;
const browserSeconds = knownBrowserDays * 86_400;

/** Sends a page, a redirect or a file, with the cookies that it changes. */
export async function respond(ctx: RouteContext, response: RouteResponse): Promise<void> {
  const { visit, console } = ctx.state;
  if (response.kind === 'download') return sendFile(ctx, response, console.downloads);
  const { session = null, enrolment, providerSignIn, browser = null } = response;
  if (session !== null) setCookie(ctx, 'session', session === 'ended' ? null : session.token);
  if (enrolment !== undefined) setCookie(ctx, 'enrolment', enrolment, enrolmentSeconds);
  if (providerSignIn !== undefined) setCookie(ctx, 'providerSignIn', providerSignIn, providerSignInSeconds);
  if (browser !== null) setCookie(ctx, 'browser', sealBrowser(browser, console.factors.sealingKeys), browserSeconds);
  if (response.kind === 'redirect') {
    if (response.flash !== null) setFlash(ctx, response.flash);
    ctx.status = 303;
    ctx.set('Location', response.to);
    ctx.body = '';
    return;
  }
  // HEAD shows no message.
  if (visit.flash !== null && ctx.method !== 'HEAD') setFlash(ctx, null);
  // The sign-out form of the frame would contain the token of a session that has ended.
  const rendered = session === null ? visit : { ...visit, session: null };
  ctx.status = response.status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = layout(rendered, response).toString();
}
