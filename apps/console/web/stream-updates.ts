import { BudgetExhausted } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import { renewVisit } from './session.ts';
import type { RouteContext } from './state.ts';
import type { MemberVisit } from './visit.ts';

/** Returns whether a browser requests the stream of a page's updates, and not the page. */
export const isStreamRequest = (ctx: RouteContext): boolean =>
  ctx.method === 'GET' && ctx.get('Accept') === 'text/event-stream';

const versionForm = /^[\w-]{16}$/;

/**
 * Opens a page's stream of server-sent events. Path, query and permissions are those of the page,
 * whose middleware have run. After 429 or 503 the browser polls.
 */
export async function streamUpdates(ctx: RouteContext, input: Record<string, unknown>): Promise<void> {
  const { route, console } = ctx.state;
  const visit = ctx.state.visit as MemberVisit;
  const { watch } = route;
  if (watch === null) return;
  const shown = new URLSearchParams(ctx.querystring).get('version') ?? '';
  ctx.status = 200;
  ctx.set({
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store, no-transform',
    // Otherwise nginx, and proxies that follow it, buffer the answer.
    'X-Accel-Buffering': 'no',
  });
  ctx.respond = false;
  try {
    await console.live.open(JSON.stringify([visit.organization.organizationId, route.name, visit.params, input]), {
      visit,
      answer: ctx.res as GuardedAnswer,
      version: versionForm.test(shown) ? shown : '',
      read: (asked) => watch(asked, input),
      renew: (asked) => renewVisit(asked, route.permission),
    });
  } catch (error) {
    if (!(error instanceof BudgetExhausted)) throw error;
    ctx.respond = true;
    ctx.state.code = 'busy';
    ctx.status = error.level === 'pod' ? 503 : 429;
    ctx.set('Retry-After', '30');
    ctx.body = '';
  }
}
