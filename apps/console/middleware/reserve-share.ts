import { hashToken } from '#domain/identity/token.ts';
import { ClientGoneError, type Reservation } from '#runtime/flow/budget.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import { waitMs } from '../web/shares.ts';
import type { RouteMiddleware } from '../web/state.ts';
import { readCookie } from './cookies.ts';

/**
 * Waits until no other request with this session's cookie is read, before anything is looked up.
 *
 * @throws BudgetFullError when it waited too long, or too many wait.
 */
export const reserveSession: RouteMiddleware = async (ctx, next) => {
  const token = readCookie(ctx, 'session');
  if (token === null) return next();
  const { sessions } = ctx.state.console.shares;
  const response = ctx.res as TrackedResponse;
  const startedAtMs = performance.now();
  const reservation = await sessions.reserve({ session: hashToken(token).toString('base64') }, 1, response);
  ctx.state.sessionShare = { reservation, waitedMs: performance.now() - startedAtMs };
  await runWhileReserved(reservation, response, next);
};

/**
 * Reserves a share of the database for a request with a session, until it has been carried out,
 * also when its browser has left.
 *
 * @throws BudgetFullError when it waited too long, or too many wait.
 */
export const reserveShare: RouteMiddleware = async (ctx, next) => {
  const { personId, organizationId, console, visit, sessionShare } = ctx.state;
  if (personId === undefined || sessionShare === undefined) return next();
  const { connections } = console.shares;
  const response = ctx.res as TrackedResponse;
  // Pages outside an organization take turns by person.
  const holders = { organization: organizationId ?? personId, person: personId };
  const connection = await connections.reserve(holders, 1, response, Math.max(0, waitMs - sessionShare.waitedMs));
  ctx.state.visit = { ...visit, share: { session: sessionShare.reservation, connection } };
  await runWhileReserved(connection, response, next);
};

async function runWhileReserved(
  reservation: Reservation,
  response: TrackedResponse,
  next: () => Promise<unknown>,
): Promise<void> {
  try {
    if (response.hasEnded) throw new ClientGoneError();
    await next();
  } finally {
    reservation.free();
  }
}
