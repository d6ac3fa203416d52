import { postOnce } from '#delivery/post/post.ts';
import { addressBlocks } from '#runtime/settings/types.ts';
import { makeCertificate } from '#test/certificates.ts';
import { median } from '../reads/compare.ts';
import { findCpuMicros } from '../reads/processes.ts';
import { percentile } from './measures.ts';
import type { BenchOptions } from './options.ts';
import { type Receiver, startReceiver } from './processes.ts';
import { describeRatios, type Result } from './results.ts';

/** Concurrent posts: the concurrency slots of one webhook. */
const underWay = 10;
const warmUpPosts = 100;

const sides = ['HTTP', 'HTTPS'] as const;
type Side = (typeof sides)[number];

interface Turn {
  postsPerSecond: number;
  p50Ms: number;
  /** Processor time of a post, of the sender and of the receiver. */
  senderMicros: number;
  receiverMicros: number;
}

/**
 * Compares posts of one webhook by HTTPS and by HTTP, in turns. The sender is this process, with
 * the worker's code for an attempt.
 */
export async function compareConnections(
  { rounds, connectionPosts }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const authority = makeCertificate({ subject: 'Bench Authority', isAuthority: true });
  const { cert, key } = makeCertificate({ subject: 'receiver', names: ['127.0.0.1'], issuer: authority });
  const [plain, secure] = await Promise.all([startReceiver(), startReceiver({ cert, key })]);
  const measure = (side: Side, posts: number) =>
    measureTurn({ receiver: side === 'HTTPS' ? secure : plain, ca: authority.cert, posts });
  const turns: Record<Side, Turn[]> = { HTTP: [], HTTPS: [] };
  try {
    for (const side of sides) await measure(side, warmUpPosts);
    for (let round = 0; round < rounds; round += 1)
      for (let place = 0; place < sides.length; place += 1) {
        const side = sides[(round + place) % sides.length] as Side;
        turns[side].push(await measure(side, connectionPosts));
      }
  } finally {
    await Promise.all([plain.stop(), secure.stop()]);
  }
  const ratios = turns.HTTPS.map((turn, round) => {
    const plainTurn = turns.HTTP[round] as Turn;
    return (turn.senderMicros + turn.receiverMicros) / (plainTurn.senderMicros + plainTurn.receiverMicros);
  });
  report('connections: done');
  return {
    title: 'processor time of a post, HTTPS / HTTP',
    headline: describeRatios(ratios),
    details: [
      `${connectionPosts} posts a turn, ${underWay} under way at once; processor time in µs a post`,
      `${''.padEnd(12)}     posts/s   p50 ms   sender   receiver`,
      ...sides.map((side) => describeSide(side, turns[side])),
    ],
  };
}

async function measureTurn(options: { receiver: Receiver; ca: string; posts: number }): Promise<Turn> {
  const { receiver, ca, posts } = options;
  const allow = addressBlocks.parse('127.0.0.0/8');
  const body = Buffer.from(JSON.stringify({ id: '0', data: 'x'.repeat(200) }));
  const resolve = async () => ({ ok: false as const, cause: 'dns_unavailable' as const });
  const tookMs: number[] = [];
  let left = posts;
  const postInTurn = async () => {
    while (left > 0) {
      left -= 1;
      const startedAt = performance.now();
      const result = await postOnce({
        nowMs: Date.now(),
        url: `${receiver.url}/`,
        headers: { 'content-type': 'application/json', 'webhook-id': '0' },
        body,
        allow,
        resolve,
        ca,
      });
      if (result.outcome !== 'delivered') throw new Error(`a post of the benchmark failed: ${result.cause}`);
      tookMs.push(performance.now() - startedAt);
    }
  };
  const receiverBefore = findCpuMicros(receiver.pid) ?? Number.NaN;
  const senderBefore = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: underWay }, postInTurn));
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(senderBefore);
  const receiverMicros = ((findCpuMicros(receiver.pid) ?? Number.NaN) - receiverBefore) / posts;
  await receiver.takePosts();
  return {
    postsPerSecond: posts / seconds,
    p50Ms: percentile(tookMs, 0.5),
    senderMicros: (user + system) / posts,
    receiverMicros,
  };
}

function describeSide(side: Side, turns: readonly Turn[]): string {
  const of = (value: (turn: Turn) => number, digits: number, width: number) =>
    median(turns.map(value)).toFixed(digits).padStart(width);
  return [
    side.padEnd(12),
    of((turn) => turn.postsPerSecond, 0, 12),
    of((turn) => turn.p50Ms, 1, 9),
    of((turn) => turn.senderMicros, 0, 9),
    of((turn) => turn.receiverMicros, 0, 11),
  ].join('');
}
