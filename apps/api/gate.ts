import type { BlockList } from 'node:net';
import { type ApiError, apiError } from '#domain/contract/errors.ts';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import { getNetwork } from '#domain/identity/network.ts';
import { checkKey, fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import { clientAddress, findBearer } from '#runtime/client.ts';
import { BoundedMap } from '#runtime/flow/bounded-map.ts';
import type { RejectedCallCounter } from '#runtime/rejected-call-counter.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { Limiter } from './limiter/limiter.ts';
import type { RequestContext } from './request-log.ts';

export interface GateDependencies {
  limiter: Limiter;
  rejectedCalls: RejectedCallCounter;
  failedAuthentications: FailedAuthentications;
  keys: KeySecrets;
  baseUrls: Record<Region, string>;
  trustedProxies: BlockList;
  tracing: Tracing;
}

const limitPolicy = `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`;

/** The checks that need no database: the key's form and tag, its region, its rate limit. */
export class Gate {
  readonly #dependencies: GateDependencies;

  constructor(dependencies: GateDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the fingerprints of the request's key, if it is a key that this region created.
   *
   * @throws ApiError `unauthenticated`, `invalid_api_key` or `rate_limited`.
   */
  identifyKey(ctx: RequestContext): Buffer[] {
    const { keys, baseUrls } = this.#dependencies;
    const bearer = findBearer(ctx.get('Authorization'));
    if (bearer === null) throw this.#failAuthentication(ctx, apiError('no_key'));
    const check = checkKey(bearer, keys.region, keys.tagSecrets);
    if (check.ok) return fingerprints(bearer, keys.peppers);
    if (check.reason === 'not_a_key') throw this.#failAuthentication(ctx, apiError('not_a_key'));
    const otherRegion = { region: regions[check.region].name, baseUrl: baseUrls[check.region] };
    throw this.#failAuthentication(ctx, apiError('other_region', otherRegion));
  }

  /** Returns the error, or 429 when too many authentications from this address have failed. */
  #failAuthentication(ctx: RequestContext, error: ApiError): ApiError {
    const { failedAuthentications, trustedProxies } = this.#dependencies;
    const waitSeconds = failedAuthentications.count(clientAddress(ctx.req, trustedProxies));
    if (waitSeconds === null) return error;
    ctx.set('Retry-After', String(waitSeconds));
    return apiError('failed_authentications', { retryAfterSeconds: waitSeconds });
  }

  /**
   * Counts the request against the key's limit, and sets the `RateLimit` headers
   * (draft-ietf-httpapi-ratelimit-headers). One round trip to Redis.
   *
   * @throws ApiError `rate_limited` when the key has used up its window.
   */
  async countCall(ctx: RequestContext, keyFingerprints: Buffer[]): Promise<void> {
    const { limiter, rejectedCalls, tracing } = this.#dependencies;
    // The oldest pepper decides: a key keeps one window while a new pepper is rolled out.
    const decision = await tracing.span('limiter', () => limiter.decide(keyFingerprints.at(-1) as Buffer));
    const { admitted, left, resetSeconds } = decision;
    ctx.set('RateLimit-Policy', limitPolicy);
    ctx.set('RateLimit', `"key";r=${left};t=${resetSeconds}`);
    ctx.state.limitLeft = left;
    if (admitted) return;
    for (const fingerprint of keyFingerprints) rejectedCalls.count(fingerprint);
    ctx.set('Retry-After', String(resetSeconds));
    throw apiError('key_limit', { retryAfterSeconds: resetSeconds });
  }

  /** Returns whether a request carries a bearer in the form of a key, and whether its tag is right. */
  bearerKind(ctx: RequestContext): 'none' | 'key' | 'valid_key' {
    const { keys } = this.#dependencies;
    const bearer = findBearer(ctx.get('Authorization'));
    if (!bearer?.startsWith('aln_')) return 'none';
    return checkKey(bearer, keys.region, keys.tagSecrets).ok ? 'valid_key' : 'key';
  }
}

/**
 * How many addresses are remembered; when more fail within a minute, the oldest are dropped first.
 * About 10 MB.
 */
const maxAddresses = 50_000;

/**
 * Counts reads whose authentication fails without I/O, per address and minute, in this process. Above
 * the limit, the address's further ones get 429. A key that this region created is never affected, also
 * a revoked one: its own limit bounds it. An IPv6 client has a whole /64 network, which counts as
 * one address.
 */
export class FailedAuthentications {
  readonly #perMinute: number;
  readonly #minutes = new BoundedMap<string, { startedAtMs: number; failures: number }>(maxAddresses);

  constructor(options: { perMinute: number }) {
    this.#perMinute = options.perMinute;
  }

  /**
   * Counts a failure. Returns null while the address is within the limit, else the whole seconds
   * until its minute ends.
   */
  count(address: string | null): number | null {
    const nowMs = performance.now();
    const network = getNetwork(address ?? 'unknown');
    const minute = this.#minutes.get(network);
    if (minute === undefined || nowMs - minute.startedAtMs >= 60_000) {
      this.#minutes.set(network, { startedAtMs: nowMs, failures: 1 });
      return null;
    }
    minute.failures += 1;
    if (minute.failures <= this.#perMinute) return null;
    return Math.max(1, Math.ceil((minute.startedAtMs + 60_000 - nowMs) / 1000));
  }
}
