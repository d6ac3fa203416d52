import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { runForClient } from '#runtime/run-for-client.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import type { Downloads } from '../web/downloads.ts';
import type { Download } from '../web/response.ts';
import type { RouteContext } from '../web/state.ts';
import { isClientAbort } from './client-abort.ts';

/**
 * Sends a file while it is created. If it cannot be finished, the connection is cut, so that half a
 * file never looks complete. When its browser leaves, its statement ends, which costs a connection to
 * the database: downloads are few. Pages and forms are short, and run to their end.
 *
 * @throws BudgetFullError when too many downloads are in progress.
 */
export async function sendFile(ctx: RouteContext, file: Download, downloads: Downloads): Promise<void> {
  const response = ctx.res as TrackedResponse;
  const { personId = null, organizationId = null, visit } = ctx.state;
  const setHeaders = () => {
    ctx.status = 200;
    ctx.set({ 'Content-Type': file.type, 'Content-Disposition': `attachment; filename="${file.fileName}"` });
  };
  if (ctx.method === 'HEAD') return setHeaders();
  // A download has a budget of its own: once it has begun, its session's pages do not wait for it.
  visit.share?.connection.free();
  const reservation = await downloads.reserve({ person: personId, organization: organizationId }, 1, response);
  visit.share?.session.free();
  try {
    await runForClient(response, async () => {
      const body = await file.open();
      setHeaders();
      ctx.flushHeaders();
      ctx.respond = false;
      await send(body, response);
    });
  } finally {
    reservation.free();
  }
}

/** Resolves when the file has been sent, or its browser has left, and its last statement has ended. */
async function send(body: Readable, response: TrackedResponse): Promise<void> {
  const closed = new Promise((resolve) => body.once('close', resolve));
  const sent = pipeline(body, response).catch((error: unknown) => {
    if (!isClientAbort(error)) throw error; // `renderProblems` logs it and cuts the connection
  });
  await Promise.all([sent, closed]);
}
