/** What encoding may use: two encoders of large bodies, short slices for small ones, reserved memory. */
import { setTimeout as wait } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { Budget, BudgetFullError, ClientGoneError } from '#runtime/flow/budget.ts';
import { encodeChunks, SmallBodyEncoder } from '../../../apps/api/encode.ts';
import { SharedBody } from '../../../apps/api/large-body.ts';
import { newResponse, setupReader } from './setup-reader.ts';

/** Two keys of the first of six organizations, and one of each other. */
const keyCounts = [2, 1, 1, 1, 1, 1];
const chunkBytes = 65_536;

/** A body in chunks, whose encoding has about a quarter of its bytes. */
function buildChunks(count: number): { body: Buffer; chunks: Buffer[] } {
  const rows = Array.from({ length: count * 1_000 }, (_, n) => JSON.stringify({ n, at: Math.sin(n).toString(36) }));
  const body = Buffer.from(rows.join(',')).subarray(0, count * chunkBytes);
  const starts = Array.from({ length: Math.ceil(body.length / chunkBytes) }, (_, n) => n * chunkBytes);
  return { body, chunks: starts.map((from) => Buffer.from(body.subarray(from, from + chunkBytes))) };
}

/** Clients that disconnect when so many chunks were encoded. */
const leavingAfter = (chunks: Buffer[], count: number) => ({
  get hasEnded() {
    return chunks.filter(({ length }) => length === 0).length >= count;
  },
  onEnd: () => {},
});

async function reserve(bytes: number) {
  const budget = new Budget<never>({ limits: { process: 1e9 }, maxWaiting: { each: 1, all: 1 }, waitMs: 1_000 });
  return { budget, memory: await budget.reserve({}, bytes, { onEnd: () => {} }) };
}

it.each(['br', 'gzip'] as const)(
  'each chunk of a large body is freed when it was encoded in %s, and its memory with it',
  async (encoding) => {
    const { body, chunks } = buildChunks(16);
    const { budget, memory } = await reserve(body.length * 2);
    const reserved: number[] = [];
    const watched = {
      get hasEnded() {
        reserved.push(budget.state.reserved - chunks.reduce((sum, { length }) => sum + length, 0));
        return false;
      },
      onEnd: () => {},
    };
    const encoded = Buffer.concat(await encodeChunks(chunks, encoding, watched, memory));
    const decoded = encoding === 'br' ? brotliDecompressSync(encoded) : gunzipSync(encoded);
    expect(decoded.equals(body)).toBe(true);
    expect(encoded.length * 2).toBeLessThan(body.length);
    expect(chunks.every(({ length }) => length === 0)).toBe(true);
    // Beside the chunks that are left: what is encoded so far, and the encoder.
    for (const bytes of reserved.slice(1)) {
      expect(bytes).toBeGreaterThanOrEqual(1_048_576);
      expect(bytes).toBeLessThanOrEqual(1_048_576 + encoded.length);
    }
  },
);

it('encoding ends with the last of its clients', async () => {
  const { body, chunks } = buildChunks(16);
  const { memory } = await reserve(body.length * 2);
  const encoding = encodeChunks(chunks, 'gzip', leavingAfter(chunks, 4), memory);
  await expect(encoding).rejects.toBeInstanceOf(ClientGoneError);
  expect(chunks.filter(({ length }) => length === 0)).toHaveLength(4);
});

it('equal small bodies that wait together are encoded once', async () => {
  const encoded: string[] = [];
  const encoder = new SmallBodyEncoder((encoding) => encoded.push(encoding));
  const [one = '', other = ''] = ['a', 'b'].map((letter) => letter.repeat(2_000));
  const read = (body: string, encoding: 'br' | 'gzip') => encoder.encode(body, `"${body[0]}"`, encoding);
  const all = await Promise.all([read(one, 'br'), read(one, 'br'), read(other, 'br'), read(one, 'gzip')]);
  expect(encoded).toEqual(['br', 'br', 'gzip']);
  expect(all[0]).toBe(all[1]);
  expect(all.map((bytes, n) => (n < 3 ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString())).toEqual([
    one,
    one,
    other,
    one,
  ]);
  await new Promise(setImmediate);
  await read(one, 'br');
  expect(encoded).toHaveLength(4); // nothing is kept
});

it('small bodies are encoded in slices of 64 KiB, and the event loop does other work between them', async () => {
  let iteration = 0;
  const byIteration: number[] = [];
  const encoder = new SmallBodyEncoder(() => {
    byIteration[iteration] = (byIteration[iteration] ?? 0) + 1;
  });
  let isOver = false;
  const count = () => {
    iteration += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const bodies = Array.from({ length: 32 }, (_, n) => encoder.encode(String(n % 10).repeat(32_768), `"${n}"`, 'gzip'));
  await Promise.all(bodies);
  isOver = true;
  expect(Math.max(...byIteration.filter((each) => each !== undefined))).toBe(2);
});

it('two large bodies are encoded at once, one of an organization, and the others wait', async () => {
  const { keys, read, bodyReader, encoders, release } = await setupReader(keyCounts);
  const reads = keys.map((key) => read(key));
  // Those that wait have the memory of their bodies alone, no more that of a statement.
  await expect.poll(() => bodyReader.state.waiting, { timeout: 30_000 }).toBe(5);
  expect(encoders).toEqual({ running: 2, most: 2, all: 2 });
  expect(bodyReader.state.largeBytes).toBeLessThan(7 * 400_000);
  release();
  for (const { content } of await Promise.all(reads)) expect(content?.body).toBeInstanceOf(SharedBody);
  expect(encoders).toEqual({ running: 0, most: 2, all: 7 });
  expect(bodyReader.state.waiting).toBe(0);
});

it('one large body of an organization is encoded at once, also for two keys', async () => {
  const { keys, read, bodyReader, encoders, release } = await setupReader(keyCounts);
  const reads = keys.slice(0, 2).map((key) => read(key));
  await expect.poll(() => [bodyReader.state.waiting, encoders.running], { timeout: 30_000 }).toEqual([1, 1]);
  // The second has its body and waits for the encoder: the memory of its statement is free again.
  await expect.poll(() => bodyReader.state.largeBytes, { timeout: 30_000 }).toBeLessThan(2 * 400_000);
  expect(encoders.running).toBe(1);
  release();
  await Promise.all(reads);
  expect(encoders.most).toBe(1);
});

it('a body whose clients have left is not encoded and has no memory; one that still waits gets its body', async () => {
  const { keys, read, bodyReader, encoders, release } = await setupReader(keyCounts);
  const [first, , second] = keys;
  if (first === undefined || second === undefined) return expect.fail();
  const [gone, alsoGone, left, stays] = Array.from({ length: 4 }, newResponse);
  const reads = [read(first, gone), read(first, alsoGone), read(second, left), read(second, stays)];
  await expect.poll(() => encoders.running, { timeout: 30_000 }).toBe(2);
  for (const response of [gone, alsoGone, left]) response?.markEnded();
  release();
  const [one, other, , last] = await Promise.allSettled(reads);
  expect([one, other]).toMatchObject([
    { status: 'rejected', reason: { name: 'ClientGoneError' } },
    { status: 'rejected', reason: { name: 'ClientGoneError' } },
  ]);
  if (last?.status !== 'fulfilled') return expect.fail();
  const { body } = last.value.content ?? {};
  if (!(body instanceof SharedBody) || stays === undefined) return expect.fail();
  // An encoded body takes the memory of its encoding alone.
  expect(bodyReader.state).toEqual({ smallBytes: 0, largeBytes: body.bytes, waiting: 0 });
  const bytes = brotliDecompressSync(Buffer.concat([...body.chunksFor(stays)]));
  expect(JSON.parse(bytes.toString()).clients).toHaveLength(1_000);
  expect(body.bytes * 2).toBeLessThan(bytes.length);
  stays.markEnded();
  expect(bodyReader.state.largeBytes).toBe(0);
});

it('a body that waits 5 s for an encoder is rejected, and its memory is free', async () => {
  const { keys, read, bodyReader, encoders, release } = await setupReader(keyCounts);
  const [first, , second, third] = keys;
  if (first === undefined || second === undefined || third === undefined) return expect.fail();
  const reads = [read(first), read(second)];
  await expect.poll(() => encoders.running, { timeout: 30_000 }).toBe(2);
  const rejected = expect(read(third)).rejects.toBeInstanceOf(BudgetFullError);
  await expect.poll(() => bodyReader.state.waiting, { timeout: 30_000 }).toBe(1);
  // A timer that begins later and ends later cannot fire first, however slow the machine is.
  const outcome = await Promise.race([rejected.then(() => 'rejected'), wait(20_000, 'still waiting')]);
  expect(outcome).toBe('rejected');
  expect(encoders).toEqual({ running: 2, most: 2, all: 2 });
  expect(bodyReader.state).toMatchObject({ smallBytes: 0, waiting: 0 });
  expect(bodyReader.state.largeBytes).toBeLessThan(2 * 400_000);
  release();
  await Promise.all(reads);
});
