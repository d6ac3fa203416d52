import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Verification, verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { startServer } from '#runtime/http-server.ts';
import { readBody, send } from '../body.ts';
import { describeProblem, request, type Target } from '../http.ts';

/**
 * A delivery has 10 s in total. A forwarded request gets less, so that its response arrives in
 * time.
 */
const responseWithinMs = 9_000;

/** Headers of the connection and not of the event. */
const ofConnection = new Set([
  'host',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
]);

/**
 * The response of the receiver behind this one. `status` is null when it did not answer, and
 * `problem` says why.
 */
export interface ForwardedResponse {
  status: number | null;
  problem: string | null;
  durationMs: number;
}

/** One received delivery with its verification and its response. */
export interface Listened {
  at: Date;
  eventId: string;
  type: string;
  /** `webhook-sequence`; null for a test event. */
  sequence: string | null;
  attempt: string | null;
  verification: Verification;
  response: ForwardedResponse;
  path: string;
  rawHeaders: readonly string[];
  body: Buffer;
}

/**
 * Listens on 127.0.0.1, verifies events, forwards them unchanged (raw body, every header of the
 * event) and returns the receiver's response, which decides about retries. An event that does not
 * verify is forwarded too, so that the developer sees whether the receiver rejects it.
 */
export function startListener(options: {
  port: number;
  secrets: readonly string[];
  /** Null answers 204 without forwarding. */
  forwardTo: string | null;
  /** PEM certificates beside the usual ones that an https receiver's may be signed by. */
  ca?: string | null;
  onListened: (listened: Listened) => void;
}): Promise<{ url: string; stop(): Promise<void> }> {
  const { port, secrets, forwardTo, ca = null, onListened } = options;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST')
      return send(response, 405, { error: 'method_not_allowed', message: 'Events are posted here.' });
    const at = new Date();
    const body = await readBody(request);
    if (body === null) return send(response, 413, { error: 'too_large', message: 'An event has at most 1 MiB.' });
    const verification = verifyDelivery({ headers: request.headersDistinct, body, secrets, now: at });
    const forwarded = forwardTo === null ? nowhere : await forward({ url: forwardTo, ca }, request.rawHeaders, body);
    if (forwarded.head === null)
      send(response, 502, { error: 'not_forwarded', message: forwarded.response.problem ?? '' });
    else response.writeHead(forwarded.head.status, forwarded.head.headers).end(forwarded.head.body);
    const { headers, url: path = '/', rawHeaders } = request;
    onListened({
      at,
      verification,
      response: forwarded.response,
      path,
      rawHeaders,
      body,
      eventId: String(headers['webhook-id'] ?? '?'),
      type: readEventType(body),
      sequence: (headers['webhook-sequence'] as string | undefined) ?? null,
      attempt: (headers['webhook-attempt'] as string | undefined) ?? null,
    });
  }

  return startServer({
    handler: (request, response) => void handle(request, response).catch(() => response.destroy()),
    host: '127.0.0.1',
    port,
    deadlineMs: 2_000,
  });
}

interface Forwarded {
  response: ForwardedResponse;
  /** Null: there was no response. */
  head: { status: number; headers: Record<string, string>; body: Buffer } | null;
}

const nowhere: Forwarded = {
  response: { status: 204, problem: null, durationMs: 0 },
  head: { status: 204, headers: {}, body: Buffer.alloc(0) },
};

async function forward(target: Target, rawHeaders: readonly string[], body: Buffer): Promise<Forwarded> {
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  try {
    const received = await request(target, {
      headers: chooseHeaders(rawHeaders, body),
      body,
      timeoutMs: responseWithinMs,
    });
    const responseBody = (await readBody(received)) ?? Buffer.alloc(0);
    const status = received.statusCode ?? 502;
    const kept = ['content-type', 'retry-after'].flatMap((name) => {
      const value = received.headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    });
    const head = { status, headers: Object.fromEntries(kept) as Record<string, string>, body: responseBody };
    return { response: { status, problem: null, durationMs: durationMs() }, head };
  } catch (error) {
    return {
      response: { status: null, problem: describeProblem(error, target, responseWithinMs), durationMs: durationMs() },
      head: null,
    };
  }
}

/** The event's headers, as names and values in turn. */
function chooseHeaders(rawHeaders: readonly string[], body: Buffer): string[] {
  const headers: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (!ofConnection.has(String(rawHeaders[index]).toLowerCase()))
      headers.push(String(rawHeaders[index]), String(rawHeaders[index + 1]));
  if (!headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length'))
    headers.push('Content-Length', String(body.length));
  return headers;
}

function readEventType(body: Buffer): string {
  try {
    const { type } = JSON.parse(body.toString('utf8')) as { type?: unknown };
    return typeof type === 'string' ? type : '?';
  } catch {
    return '?';
  }
}
