import { Readable } from 'node:stream';
import type { ParameterizedContext } from 'koa';

/**
 * Sends a large body: the next chunk is taken when the client's socket has room for it.
 *
 * The next request on a connection is the only sign that an answer was read, so one of this size is
 * its connection's last: an unread answer does not hold a connection for as long as an idle one is
 * kept.
 */
export function sendChunks(ctx: ParameterizedContext, chunks: Iterable<Buffer>, bytes: number): void {
  ctx.body = Readable.from(chunks, { objectMode: false, highWaterMark: 1 });
  ctx.length = bytes;
  ctx.set('Connection', 'close');
}
