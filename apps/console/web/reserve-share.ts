import { ClientGone } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import type { RouteMiddleware } from './state.ts';

/**
 * Reserves a share of the database for a request with a session, until it has been carried out,
 * also when its browser has left.
 *
 * @throws BudgetExhausted when it waited too long, or too many wait.
 */
export const reserveShare: RouteMiddleware = async (ctx, next) => {
  const { personId, organizationId, console, visit } = ctx.state;
  if (personId === undefined) return next();
  const answer = ctx.res as GuardedAnswer;
  // Pages outside an organization take turns by person.
  const share = await console.shares.reserve({ organization: organizationId ?? personId, person: personId }, 1, answer);
  try {
    if (answer.hasEnded) throw new ClientGone();
    ctx.state.visit = { ...visit, share };
    await next();
  } finally {
    share.release();
  }
};
