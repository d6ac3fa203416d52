import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
  gzipSync,
} from 'node:zlib';
import pLimit from 'p-limit';
import { ClientGoneError, type Ends, type Reservation } from '#runtime/flow/budget.ts';
import { IterationBudget } from '#runtime/flow/iteration-budget.ts';
import type { Encoding } from './accept-encoding.ts';
import { chunkBytes } from './large-statement.ts';

/** The memory of an encoder besides its input and output: br takes more than gzip. */
const encoderBytes = 1_048_576;

/** The lowest levels: docs/adr/0147 has the measurements. */
const gzipLevel = 1;
const buildBrotliParams = (bytes: number, windowBits: number) => ({
  [constants.BROTLI_PARAM_QUALITY]: 1,
  [constants.BROTLI_PARAM_LGWIN]: windowBits,
  [constants.BROTLI_PARAM_SIZE_HINT]: bytes,
});
/** Bits of the window: a small body fits 2^16; 2^18 costs a large one 0.1 % of its bytes. */
const windowBits = { small: 16, large: 18 };

/** Bytes of small bodies that are encoded in one iteration of the event loop: about a millisecond. */
const bytesPerIteration = 65_536;

/**
 * Encodes small bodies. A thread would cost more than the work: 60 to 90 µs for 6 KB. Equal bodies
 * that wait together are encoded once, such as those of one statement for several keys.
 */
export class SmallBodyEncoder {
  readonly #iterations = new IterationBudget(bytesPerIteration);
  readonly #onEncoded: (encoding: Encoding) => void;
  /** By encoding and ETag, until the end of the iteration in which it was encoded. */
  readonly #encoded = new Map<string, Promise<Buffer>>();

  /** @param onEncoded - called for each body that was encoded. */
  constructor(onEncoded: (encoding: Encoding) => void) {
    this.#onEncoded = onEncoded;
  }

  /** @param etag - of the body, by which equal ones are found. */
  encode(body: string, etag: string, encoding: Encoding): Promise<Buffer> {
    return this.#encoded.getOrInsertComputed(`${encoding} ${etag}`, (name) => this.#encode(name, body, encoding));
  }

  async #encode(name: string, body: string, encoding: Encoding): Promise<Buffer> {
    const bytes = Buffer.from(body);
    await this.#iterations.use(bytes.length);
    this.#onEncoded(encoding);
    setImmediate(() => this.#encoded.delete(name));
    return encoding === 'gzip'
      ? gzipSync(bytes, { level: gzipLevel })
      : brotliCompressSync(bytes, { params: buildBrotliParams(bytes.length, windowBits.small) });
  }
}

/**
 * Encodes a large body in the thread pool, chunk by chunk. A chunk is freed when it was encoded, and
 * the reservation follows.
 *
 * @param chunks - of the body; each is replaced by an empty one.
 * @param responses - for which it is encoded.
 * @returns the chunks of the encoded body.
 * @throws ClientGoneError once all clients have disconnected.
 */
export async function encodeChunks(
  chunks: Buffer[],
  encoding: Encoding,
  responses: Ends & { hasEnded: boolean },
  memory: Reservation,
): Promise<Buffer[]> {
  let bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const encoder =
    encoding === 'gzip'
      ? createGzip({ level: gzipLevel, chunkSize: chunkBytes })
      : createBrotliCompress({ params: buildBrotliParams(bytes, windowBits.large), chunkSize: chunkBytes });
  const encoded: Buffer[] = [];
  /** The next chunk is requested when the one before was encoded. */
  function* takeChunks(): Generator<Buffer> {
    for (const [index, chunk] of chunks.entries()) {
      if (responses.hasEnded) throw new ClientGoneError();
      yield chunk;
      chunks[index] = Buffer.alloc(0);
      bytes -= chunk.length;
      memory.resize(bytes + encoderBytes);
    }
  }
  await pipeline(takeChunks, encoder, async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      bytes += piece.length;
      encoded.push(piece);
    }
  });
  return encoded;
}

const fileEncoder = pLimit(1);
/** Of files, which are encoded once for a process. */
const fileLevels = { br: 5, gzip: 6 };

/** Encodes a public file in the thread pool, one at a time. */
export const encodeFile = (file: Buffer, encoding: Encoding): Promise<Buffer> =>
  fileEncoder(() =>
    encoding === 'gzip'
      ? promisify(gzip)(file, { level: fileLevels.gzip })
      : promisify(brotliCompress)(file, { params: { [constants.BROTLI_PARAM_QUALITY]: fileLevels.br } }),
  );
