import { pipeline } from 'node:stream/promises';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import type { Download } from './answer.ts';
import { isClientAbort } from './client-abort.ts';
import type { Downloads } from './downloads.ts';
import type { RouteContext } from './state.ts';

/**
 * Sends a file while it is created. If it cannot be finished, the connection is cut, so that half a
 * file never looks complete.
 *
 * @throws BudgetExhausted when too many downloads are in progress.
 */
export async function sendFile(ctx: RouteContext, file: Download, downloads: Downloads): Promise<void> {
  const answer = ctx.res as GuardedAnswer;
  const { personId = null, organizationId = null } = ctx.state;
  if (ctx.method !== 'HEAD') {
    const hold = await downloads.reserve({ person: personId, organization: organizationId }, 1, answer);
    answer.onEnd(() => hold.release());
  }
  const body = ctx.method === 'HEAD' ? null : await file.open();
  ctx.status = 200;
  ctx.set({ 'Content-Type': file.type, 'Content-Disposition': `attachment; filename="${file.fileName}"` });
  if (body === null) return;
  ctx.flushHeaders();
  ctx.respond = false;
  await pipeline(body, answer).catch((error: unknown) => {
    if (!isClientAbort(error)) throw error; // `renderProblems` logs it and cuts the connection
  });
}
