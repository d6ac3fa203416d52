import { describeError, describeSilence, OrgApiError } from './errors.ts';
import { clientVersion, Reads } from './generated.ts';
import type { ApiResponse, Cache, CallOptions, Clock } from './response.ts';
import { type OrgApiOptions, readBaseUrl, readKey, realClock } from './settings.ts';

type Outcome = { body: string; response: Omit<ApiResponse<never>, 'data'> } | OrgApiError;

/**
 * The reads of the API with one key. Calls may run in parallel: they share what the server says of
 * the key's limit. A call is sent again after 408, 429, 5xx, a timeout or a broken connection, and a
 * wait that the server asks for is never cut short.
 */
export class OrgApi extends Reads {
  readonly #key: string;
  readonly #baseUrl: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #maxWaitMs: number;
  readonly #cache: Cache | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #clock: Clock;
  /** When the key has a request left again, by `RateLimit` of the last response without any. */
  #freeAtMs = 0;

  /** @throws TypeError for a key or a base URL that cannot be used. */
  constructor(options: OrgApiOptions = {}) {
    super();
    const { timeoutMs = 30_000, maxRetries = 2, maxWaitMs = 90_000, fetch = globalThis.fetch } = options;
    this.#key = readKey(options.key);
    this.#baseUrl = readBaseUrl(this.#key, options.baseUrl);
    this.#timeoutMs = timeoutMs;
    this.#maxRetries = maxRetries;
    this.#maxWaitMs = maxWaitMs;
    this.#cache = options.cache;
    this.#fetch = (...request) => fetch(...request); // workerd rejects fetch as a method of this
    this.#clock = options.clock ?? realClock;
  }

  protected async read<T>(
    template: string,
    organizationId: string,
    { ifNoneMatch, signal }: CallOptions,
  ): Promise<ApiResponse<T>> {
    const path = template.replace('{orgId}', encodeURIComponent(organizationId));
    const cached = ifNoneMatch ? undefined : await this.#cache?.get(path);
    const { body, response } = await this.#send(path, ifNoneMatch || cached?.etag, signal);
    const data = response.isUnchanged ? JSON.parse(cached?.body ?? 'null') : parseBody(body, response.requestId);
    if (!response.isUnchanged && response.etag) await this.#cache?.set(path, { etag: response.etag, body });
    return { ...response, data };
  }

  /** Sends until a response counts: `maxRetries` and `maxWaitMs` bound it. */
  async #send(path: string, etag: string | undefined, signal: AbortSignal | undefined) {
    let failures = 0;
    let leftMs = this.#maxWaitMs;
    const wait = async (ms: number) => {
      leftMs -= ms;
      await this.#clock.wait(ms, signal);
    };
    for (;;) {
      const untilFreeMs = this.#freeAtMs - this.#clock.now();
      // A longer wait than is left: the server's 429 says so at once.
      if (untilFreeMs > 0 && untilFreeMs <= leftMs) await wait(untilFreeMs);
      const outcome = await this.#attempt(path, etag, signal);
      if (!(outcome instanceof OrgApiError)) return outcome;
      const isWaitOnly = outcome.status === 429 && outcome.retryAfterSeconds !== null;
      if (!isWaitOnly) failures += 1;
      const waitMs = chooseWaitMs(outcome, failures, leftMs);
      if (failures > this.#maxRetries || waitMs === null) throw outcome;
      await wait(waitMs);
    }
  }

  async #attempt(path: string, etag: string | undefined, signal: AbortSignal | undefined): Promise<Outcome> {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.#key}`,
      Accept: 'application/json',
      'User-Agent': `org-api-typescript/${clientVersion}`,
      ...(etag && { 'If-None-Match': etag }),
    };
    const end = new AbortController();
    const abort = () => end.abort(signal?.reason);
    const timer = setTimeout(() => end.abort(), this.#timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      signal?.throwIfAborted();
      const options = { headers, signal: end.signal, redirect: 'manual' } as const;
      const received = await this.#fetch(this.#baseUrl + path, options);
      const body = await received.text();
      const { status, headers: given } = received;
      const response = readHeaders(given, status === 304);
      if (response.rateLimit?.remaining === 0) this.#freeAtMs = this.#clock.now() + response.rateLimit.seconds * 1_000;
      return status === 200 || (status === 304 && etag) ? { body, response } : describeError(status, given, body);
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      return describeSilence(end.signal.aborted ? 'timeout' : 'connection', this.#baseUrl, cause);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }
}

function readHeaders(headers: Headers, isUnchanged: boolean): Omit<ApiResponse<never>, 'data'> {
  const [, remaining, seconds] = /;r=(\d+);t=(\d+)/.exec(headers.get('RateLimit') ?? '') ?? [];
  return {
    isUnchanged,
    etag: headers.get('ETag') ?? '',
    requestId: headers.get('Request-Id'),
    rateLimit: remaining === undefined ? null : { remaining: Number(remaining), seconds: Number(seconds) },
    keyExpires: headers.get('Key-Expires'),
  };
}

/** The parser's own error quotes the body, so it is no cause of this one. */
function parseBody(body: string, requestId: string | null): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new OrgApiError('invalid_response', { message: '200 with a body that is not JSON', status: 200, requestId });
  }
}

/**
 * Returns how long to wait before the next attempt; null: there is none. Random parts keep callers
 * apart that wait for the same moment, within the bound.
 */
function chooseWaitMs({ status, retryAfterSeconds }: OrgApiError, failures: number, leftMs: number): number | null {
  if (status !== null && status !== 408 && status !== 429 && status < 500) return null;
  const askedMs = retryAfterSeconds === null ? 500 * 2 ** (failures - 1) : Math.max(1, retryAfterSeconds) * 1_000;
  return askedMs > leftMs ? null : Math.min(askedMs + Math.random() * 500, leftMs);
}
