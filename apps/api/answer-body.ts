import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { ParameterizedContext } from 'koa';
import type { Hold } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';

/** Answers up to this size in bytes are sent in one piece, as text. */
export const smallAnswerBytes = 65_536;

/** The bytes of a large answer, which several requests of one key may share. */
export interface SharedChunks {
  /** Returns the chunks for one of the requests; each is released when all of them have sent it. */
  partsFor(answer: GuardedAnswer): Generator<Buffer>;
}

/**
 * Returns the entity tag of an answer, the same for all keys of its organization. The database
 * computes that of a large answer: `authorizedInChunks`.
 */
export const tagOfText = (text: string): string => `"${hash('sha256', text, 'base64url').slice(0, 22)}"`;

const noBytes = Buffer.alloc(0);

/**
 * Shares the chunks among the answers of several requests. A chunk is released when all of them
 * have sent it or ended.
 */
export function shareChunks(chunks: Buffer[], answers: Iterable<GuardedAnswer>, hold: Hold): SharedChunks {
  const passed = new Map([...answers].map((answer) => [answer, 0]));
  const readersLeft = chunks.map(() => passed.size);
  let held = chunks.reduce((sum, chunk) => sum + chunk.length, 0);

  function pass(answer: GuardedAnswer, to: number): void {
    const from = passed.get(answer) ?? 0;
    for (let index = from; index < to; index += 1) {
      readersLeft[index] = (readersLeft[index] ?? 1) - 1;
      if (readersLeft[index] !== 0) continue;
      held -= chunks[index]?.length ?? 0;
      chunks[index] = noBytes;
    }
    passed.set(answer, Math.max(from, to));
    hold.resize(held);
  }
  hold.resize(held);
  for (const answer of passed.keys()) answer.onEnd(() => pass(answer, chunks.length));
  return {
    *partsFor(answer) {
      for (let index = 0; index < chunks.length; index += 1) {
        yield chunks[index] ?? noBytes;
        pass(answer, index + 1);
      }
    },
  };
}

/**
 * How many bytes of large answers are written in one turn of the event loop, of all answers
 * together. Without it, everything that clients' sockets have room for is written at once, 4 MB for
 * each, before any other request is handled.
 */
const bytesPerTurn = 262_144;

let bytesLeft = bytesPerTurn;
let nextTurn: Promise<void> | null = null;

/** Resolves when this number of bytes may be written; waiting answers take turns. */
async function waitForTurn(bytes: number): Promise<void> {
  while (bytesLeft <= 0) {
    nextTurn ??= setImmediate().then(() => {
      bytesLeft = bytesPerTurn;
      nextTurn = null;
    });
    await nextTurn;
  }
  bytesLeft -= bytes;
}

async function* inTurns(chunks: Iterable<Buffer>): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    await waitForTurn(chunk.length);
    yield chunk;
  }
}

/**
 * Sends a large body: the next chunk is written when the client's socket has room for it.
 *
 * The next request on a connection is the only sign that an answer was read. So a large answer
 * closes its connection: unread, it would be held for as long as an idle connection is kept.
 */
export function sendChunks(ctx: ParameterizedContext, chunks: Iterable<Buffer>, bytes: number): void {
  ctx.body = Readable.from(inTurns(chunks), { objectMode: false, highWaterMark: 1 });
  ctx.length = bytes;
  ctx.set('Connection', 'close');
  ctx.remove('Keep-Alive');
}
