import { Readable } from 'node:stream';
import type { ParameterizedContext } from 'koa';
import type { Reservation } from '#runtime/flow/budget.ts';
import { IterationBudget } from '#runtime/flow/iteration-budget.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';

const noBytes = Buffer.alloc(0);

/** A large body that several responses share. A chunk is freed when all of them have sent it. */
export class SharedBody {
  readonly bytes: number;
  readonly #chunks: Buffer[];
  readonly #memory: Reservation;
  /** The number of chunks that each response has sent; without those that have ended. */
  readonly #sent = new Map<TrackedResponse, number>();
  #bytesLeft: number;
  #freed = 0;

  /** @param memory - of the chunks, which is freed with them. */
  constructor(chunks: Buffer[], responses: Iterable<TrackedResponse>, memory: Reservation) {
    this.#chunks = chunks;
    this.#memory = memory;
    this.bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    this.#bytesLeft = this.bytes;
    for (const response of responses) this.#sent.set(response, 0);
    for (const response of [...this.#sent.keys()])
      response.onEnd(() => {
        this.#sent.delete(response);
        this.#freeSent();
      });
    this.#freeSent();
  }

  /** Yields the chunks for one of the responses, which has sent a chunk when it asks for the next. */
  *chunksFor(response: TrackedResponse): Generator<Buffer> {
    for (let index = 0; index < this.#chunks.length; index += 1) {
      yield this.#chunks[index] ?? noBytes;
      if (this.#sent.has(response)) this.#sent.set(response, index + 1);
      this.#freeSent();
    }
  }

  #freeSent(): void {
    for (const slowest = Math.min(this.#chunks.length, ...this.#sent.values()); this.#freed < slowest; ) {
      this.#bytesLeft -= this.#chunks[this.#freed]?.length ?? 0;
      this.#chunks[this.#freed] = noBytes;
      this.#freed += 1;
    }
    this.#memory.resize(this.#bytesLeft);
    if (this.#sent.size === 0) this.#memory.free();
  }
}

/**
 * How many bytes of large bodies are written in one iteration of the event loop, of all responses.
 * Without it, everything that clients' sockets have room for is written at once, 4 MB for each,
 * before any other request is handled.
 */
const bytesPerIteration = 262_144;

/** Sends large bodies: the next chunk is written when the client's socket has room for it. */
export class LargeBodySender {
  readonly #iterations = new IterationBudget(bytesPerIteration);

  /**
   * The next request on a connection is the only sign that a response was read. So a large one
   * closes its connection: unread, it would be kept open for as long as an idle connection is kept.
   */
  send(ctx: ParameterizedContext, chunks: Iterable<Buffer>, bytes: number): void {
    ctx.body = Readable.from(this.#inSlices(chunks), { objectMode: false, highWaterMark: 1 });
    ctx.length = bytes;
    ctx.set('Connection', 'close');
    ctx.remove('Keep-Alive');
  }

  async *#inSlices(chunks: Iterable<Buffer>): AsyncGenerator<Buffer> {
    for (const chunk of chunks) {
      await this.#iterations.use(chunk.length);
      yield chunk;
    }
  }
}
