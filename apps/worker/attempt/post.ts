import { type AllowList, judgeAddress } from '#domain/webhooks/address/addresses.ts';
import { judgeUrl, type Target } from '#domain/webhooks/address/url.ts';
import { postDeadlineMs } from '#workflows/deliver-event/types.ts';
import { openConnection, secureConnection } from './connect.ts';
import { type Exchange, exchange } from './exchange.ts';
import { causeOfError, withProofOfOwnFault } from './fault.ts';
import { type Cause, causeOfStatus, factsOf, type Outcome } from './outcome.ts';
import type { Resolve } from './resolve.ts';
import { parseRetryAfter } from './retry-after.ts';
import { type HasRoute, hasRoute } from './route.ts';

/** One attempt. Defaults are the design's. */
export interface Post {
  url: string;
  /** Ours besides Host, Content-Length and Connection. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** For look-up, connection, TLS, request and status line together, and for reading the answer. 10 s. */
  deadlineMs?: number;
  /** How much of the answer's body is kept. 16 KiB. */
  keepBytes?: number;
  allow: AllowList;
  resolve: Resolve;
  /** Asked when a connection failed as it does without a route. The kernel's routing table. */
  hasRoute?: HasRoute;
  /** Unix time in ms, for dates in `Retry-After`; the deadline and the timings come from the process's own clock. */
  clock?: () => number;
  /** PEM of authorities that replace those Node trusts; for tests. */
  ca?: string;
}

/** What is known so far; `conclude` makes an outcome of it. */
interface Progress {
  timingsMs: { -readonly [P in keyof Outcome['timingsMs']]: Outcome['timingsMs'][P] };
  peerAddress: string | null;
  exchange: Exchange | null;
}

/**
 * Makes one attempt and tells what became of it (design, section 6, "One attempt"). Whatever a receiver, its DNS or the network does is a value; only a header that
 * cannot be sent throws. Redirects are not followed: nothing but the URL that was judged is ever contacted.
 */
export async function postOnce(post: Post): Promise<Outcome> {
  const startedAt = performance.now();
  const deadline = startDeadline(post.deadlineMs ?? postDeadlineMs);
  const progress: Progress = {
    timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
    peerAddress: null,
    exchange: null,
  };
  try {
    const claimed = await attempt(post, progress, deadline.signal);
    const cause = await withProofOfOwnFault(claimed, post.hasRoute ?? hasRoute);
    progress.timingsMs.total = since(startedAt);
    return conclude(cause, progress, (post.clock ?? Date.now)());
  } finally {
    deadline.clear();
  }
}

/** Runs the phases in order; the first that fails names the cause. */
async function attempt(post: Post, progress: Progress, signal: AbortSignal): Promise<Cause> {
  const { timingsMs } = progress;
  const target = judgeUrl(post.url, post.allow);
  if (!target.ok) return target.cause;

  const found = await findAddresses(target, post, progress, signal);
  if (!found.ok) return found.cause;

  const connectAt = performance.now();
  const opened = await openConnection({ ...target, addresses: found.addresses, signal });
  if (!opened.ok) return opened.cause;
  timingsMs.connect = since(connectAt);
  progress.peerAddress = opened.socket.remoteAddress ?? null;

  const tlsAt = performance.now();
  const isTls = target.url.protocol === 'https:';
  const secured = isTls ? await secureConnection({ ...target, socket: opened.socket, ca: post.ca, signal }) : opened;
  if (!secured.ok) return secured.cause;
  if (isTls) timingsMs.tls = since(tlsAt);

  const sentAt = performance.now();
  const { headers, body, keepBytes = 16_384 } = post;
  const onFirstByte = () => {
    timingsMs.firstByte = since(sentAt);
  };
  const { socket } = secured;
  const answer = await exchange({ socket, url: target.url, headers, body, keepBytes, signal, onFirstByte });
  progress.exchange = answer;
  if (answer.status !== null) return causeOfStatus(answer.status);
  return signal.aborted && answer.error === null ? 'answer_timeout' : causeOfError(answer.error, 'answer');
}

type Found = { ok: true; addresses: readonly string[] } | { ok: false; cause: Cause };

/** The host's addresses, all of which may be reached: one that may not refuses the whole. */
async function findAddresses(target: Target, post: Post, progress: Progress, signal: AbortSignal): Promise<Found> {
  if (target.address !== null) return { ok: true, addresses: [target.address] };
  const lookedUpAt = performance.now();
  const resolution = await Promise.race([post.resolve(target.hostname, signal), aborted(signal)]);
  if (!resolution?.ok) return { ok: false, cause: resolution?.cause ?? 'dns_timeout' };
  progress.timingsMs.dns = since(lookedUpAt);
  const judged = resolution.addresses.map((address) => judgeAddress(address, post.allow));
  if (!judged.every((one) => one.ok)) return { ok: false, cause: 'name_not_public' };
  if (target.url.protocol === 'http:' && !judged.every((one) => one.allowed)) return { ok: false, cause: 'url_scheme' };
  return { ok: true, addresses: resolution.addresses };
}

function conclude(cause: Cause, { exchange, peerAddress, timingsMs }: Progress, nowMs: number): Outcome {
  const status = exchange?.status ?? null;
  const answer = exchange?.answer ?? Buffer.alloc(0);
  const retryAfter = status === 429 || status === 503 ? (exchange?.retryAfter ?? null) : null;
  const retryAfterSeconds = retryAfter === null ? null : parseRetryAfter(retryAfter, nowMs);
  return {
    ...factsOf(cause),
    cause,
    status,
    timingsMs,
    peerAddress,
    keptBytes: answer.length,
    answer,
    retryAfterSeconds,
  };
}

/**
 * A signal that aborts when the time is up. The event loop may be late itself; it gets to read once more what has arrived before that, so that a busy worker
 * does not turn an answer that came in time into a timeout.
 */
function startDeadline(deadlineMs: number): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController();
  const timer = setTimeout(() => setImmediate(() => controller.abort()), deadlineMs);
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}

function since(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}
