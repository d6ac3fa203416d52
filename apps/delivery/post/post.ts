import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Socket } from 'node:net';
import type { AllowList } from '#domain/webhooks/address/addresses.ts';
import { checkUrl, type Target } from '#domain/webhooks/address/url.ts';
import type { UrlProblem } from '#domain/webhooks/address/url-problems.ts';
import { type Cause, findStatusCause, getCauseProperties } from '#domain/webhooks/causes.ts';
import { findAddresses } from '#runtime/egress/addresses.ts';
import { openConnection, secureConnection } from '#runtime/egress/connect.ts';
import { findErrorCause } from '#runtime/egress/fault.ts';
import type { Resolve } from '#runtime/egress/resolve.ts';
import { postDeadlineMs, postUntilMs } from '../times.ts';
import { type Exchange, exchange, retryAfterStatuses } from './exchange.ts';
import type { PostResult } from './result.ts';
import { parseRetryAfter } from './retry-after.ts';
import { type HasRoute, hasRoute } from './route.ts';

export interface Post {
  url: string;
  /** Headers besides Host, Content-Length and Connection. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** For the look-up of the name, which takes none of the receiver's time. 8 s. */
  lookUpMs?: number;
  /** For everything from the connection to the status line, and for reading the response. 10 s. */
  deadlineMs?: number;
  /** How many bytes of the response's body are kept. 16 KiB. */
  keepBytes?: number;
  allow: AllowList;
  resolve: Resolve;
  /** Asked after an error that a missing route causes. By default the kernel's routing table. */
  hasRoute?: HasRoute;
  /** PostgreSQL's time as the post begins (Unix ms): this machine's clock may be wrong. */
  nowMs: number;
  /** Called with an error before anything was sent; the attempt ends as `internal_error`. */
  onInternalError?: (error: unknown) => void;
  /** PEM of authorities that replace those that Node trusts; for tests. */
  ca?: string;
}

/** How far this machine's clock may be from PostgreSQL's while it judges the dates of certificates. */
const mostClockErrorMs = 60_000;

/** What is known so far; `buildResult` turns it into a result. */
interface Progress extends Pick<PostResult, 'timingsMs' | 'peerAddress'> {
  exchange: Exchange | null;
  /** Set before the request is written. A failure before that has sent nothing. */
  isSending: boolean;
}

/**
 * Makes one post and returns what it found, which is known with the status line. Failures of the
 * receiver, its DNS or the network are values, and so are errors of the service before anything was
 * sent; later ones are thrown. Redirects are not followed.
 */
export async function postOnce(post: Post): Promise<PostResult> {
  const startedAt = performance.now();
  const progress: Progress = {
    timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
    peerAddress: null,
    exchange: null,
    isSending: false,
  };
  let cause = await runPhases(post, progress).catch((error: unknown): Cause => {
    if (progress.isSending) throw error;
    post.onInternalError?.(error);
    return 'internal_error';
  });
  // The kernel says so without a route, and a router may say it about the receiver's network. It
  // is an internal error, which is tried for ever, only if this machine has no other route. Only
  // IPv4 is checked: without an IPv6 route the cause is `ipv6_only`, which is the receiver's.
  if (cause === 'network_unreachable' && (await (post.hasRoute ?? hasRoute)())) cause = 'host_unreachable';
  const nowMs = post.nowMs + (performance.now() - startedAt);
  const isOfDates = cause === 'tls_expired' || cause === 'tls_not_yet_valid';
  if (isOfDates && Math.abs(Date.now() - nowMs) > mostClockErrorMs) cause = 'clock_wrong';
  progress.timingsMs.total = since(startedAt);
  return buildResult(cause, progress, nowMs);
}

/** Does what may take `ms`, with a signal that aborts then. */
async function within<Result>(ms: number, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  // The event loop may itself be late, so it first reads once more: what arrived in time counts.
  const timer = setTimeout(() => setImmediate(() => controller.abort()), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs the phases in order. The first that fails determines the cause. */
async function runPhases(post: Post, progress: Progress): Promise<Cause> {
  for (const [name, value] of Object.entries(post.headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  const target = checkUrl(post.url, post.allow);
  if (!target.ok) {
    if (isDamaged(target.cause, post.url)) throw new Error(`the stored URL is damaged: ${target.cause}`);
    return target.cause;
  }

  const resolve = timeResolve(post.resolve, progress);
  const found = await within(post.lookUpMs ?? postUntilMs, (signal) =>
    findAddresses(target, { allow: post.allow, resolve, signal }),
  );
  if (!found.ok) return found.cause;
  const { addresses } = found;
  return within(post.deadlineMs ?? postDeadlineMs, (signal) => send({ target, addresses, post, progress, signal }));
}

/** A post whose receiver is known. */
interface Found {
  target: Target;
  addresses: readonly string[];
  post: Post;
  progress: Progress;
  /** Aborts when the receiver's time is up. */
  signal: AbortSignal;
}

async function send({ post, progress, signal, ...found }: Found): Promise<Cause> {
  const opened = await open({ post, progress, signal, ...found });
  if (!opened.ok) return opened.cause;
  const { headers, body, keepBytes = 16_384 } = post;
  const sentAt = performance.now();
  const onFirstByte = () => {
    progress.timingsMs.firstByte = since(sentAt);
  };
  progress.isSending = true;
  const { connection, socket } = opened;
  const { url } = found.target;
  const response = await exchange({ connection, socket, url, headers, body, keepBytes, signal, onFirstByte });
  progress.exchange = response;
  if (response.status !== null) return findStatusCause(response.status);
  return signal.aborted && response.error === null ? 'response_timeout' : findErrorCause(response.error, 'response');
}

type Opened = { ok: true; connection: Socket; socket: Socket } | { ok: false; cause: Cause };

/** Opens a TCP connection, and TLS over it for an `https:` URL. */
async function open({ target, addresses, post, progress, signal }: Found): Promise<Opened> {
  const { timingsMs } = progress;
  const connectAt = performance.now();
  const opened = await openConnection({ addresses, port: target.port, signal });
  if (!opened.ok) return opened;
  timingsMs.connect = since(connectAt);
  const { socket: connection } = opened;
  progress.peerAddress = connection.remoteAddress ?? null;
  if (target.url.protocol !== 'https:') return { ok: true, connection, socket: connection };

  const tlsAt = performance.now();
  const secured = await secureConnection({ ...target, socket: connection, ca: post.ca, signal });
  if (!secured.ok) return secured;
  timingsMs.tls = since(tlsAt);
  return { ok: true, connection, socket: secured.socket };
}

/**
 * Returns whether a stored URL must be damaged, because a registration rejects it under any
 * settings. What settings or DNS decide is a rejection that the receiver's owner can act on.
 */
function isDamaged(cause: UrlProblem, url: string): boolean {
  return (
    (cause !== 'url_scheme' || !/^https?:/i.test(url)) && cause !== 'address_not_public' && cause !== 'url_host_local'
  );
}

/** Records how long the look-up of the name took, if it found addresses in time. */
function timeResolve(resolve: Resolve, { timingsMs }: Progress): Resolve {
  return async (hostname, signal) => {
    const startedAt = performance.now();
    const resolution = await resolve(hostname, signal);
    if (resolution.ok && !signal.aborted) timingsMs.dns = since(startedAt);
    return resolution;
  };
}

function buildResult(cause: Cause, { exchange, peerAddress, timingsMs }: Progress, nowMs: number): PostResult {
  const status = exchange?.status ?? null;
  const retryAfter = retryAfterStatuses.includes(status) ? (exchange?.retryAfter ?? null) : null;
  const retryAfterSeconds = retryAfter === null ? null : parseRetryAfter(retryAfter, nowMs);
  return {
    ...getCauseProperties(cause),
    cause,
    status,
    timingsMs,
    peerAddress,
    body: exchange?.body ?? Buffer.alloc(0),
    encoding: exchange?.encoding ?? null,
    rest: exchange?.rest ?? null,
    retryAfterSeconds,
  };
}

const since = (startedAt: number): number => Math.round(performance.now() - startedAt);
