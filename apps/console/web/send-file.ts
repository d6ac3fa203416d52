import { pipeline } from 'node:stream/promises';
import { createBudget } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import type { Download } from './answer.ts';
import { isClientAbort } from './client-abort.ts';
import type { RouteContext } from './state.ts';

/**
 * Bounds the downloads in progress per person, organization and process. Each takes about 6 MB, and
 * no database connection while its browser reads. A download over the limit is refused at once.
 */
export const createDownloads = () =>
  createBudget<'person' | 'organization'>({
    limits: { person: 2, organization: 4, pod: 8 },
    maxWaiting: { each: 0, all: 0 },
    waitMs: 0,
  });

/**
 * Sends a file while it is created. If it cannot be finished, the connection is cut, so that half a
 * file never looks complete.
 *
 * @throws BudgetExhausted when too many downloads are in progress.
 */
export async function sendFile(
  ctx: RouteContext,
  file: Download,
  downloads: ReturnType<typeof createDownloads>,
): Promise<void> {
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
    if (!isClientAbort(error)) throw error; // `drawProblems` logs it and cuts the connection
  });
}
