import type { BlockList } from 'node:net';
import type { Next } from 'koa';
import { type ApiError, apiError } from '#domain/contract/errors.ts';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/fingerprint.ts';
import { checkKey } from '#domain/keys/format.ts';
import { clientAddress } from '#runtime/address.ts';
import { bearerOf } from '#runtime/bearer.ts';
import type { RefusalCounter } from '#runtime/refusal-counter.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { FailedAuthentications } from './failed-authentications.ts';
import type { Limiter } from './limiter/limiter.ts';
import type { ReadContext, RequestContext } from './state.ts';

export interface GateDependencies {
  limiter: Limiter;
  refusals: RefusalCounter;
  failedAuthentications: FailedAuthentications;
  keys: KeySecrets;
  baseUrls: Record<Region, string>;
  trustedProxies: BlockList;
  tracing: Tracing;
}

const limitPolicy = `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`;

/** Creates the checks that need no database: the key's form and tag, its region, its rate limit. */
export function createGate(deps: GateDependencies) {
  /** Returns the refusal, or 429 when too many authentications from this address have failed. */
  function refuseAuthentication(ctx: RequestContext, refusal: ApiError): ApiError {
    const waitSeconds = deps.failedAuthentications.count(clientAddress(ctx.req, deps.trustedProxies));
    if (waitSeconds === null) {
      ctx.set('WWW-Authenticate', 'Bearer');
      return refusal;
    }
    ctx.set('Retry-After', String(waitSeconds));
    return apiError('failed_authentications', { retryAfterSeconds: waitSeconds });
  }

  /**
   * Returns the fingerprints of the request's key, if it is a genuine key of this region.
   *
   * @throws ApiError `unauthenticated`, `invalid_api_key` or `rate_limited`.
   */
  function identifyKey(ctx: RequestContext): Buffer[] {
    const bearer = bearerOf(ctx.get('Authorization'));
    if (bearer === null) throw refuseAuthentication(ctx, apiError('no_key'));
    const check = checkKey(bearer, deps.keys.region, deps.keys.tagSecrets);
    if (!check.ok && check.reason === 'malformed') throw refuseAuthentication(ctx, apiError('not_a_key'));
    if (!check.ok) {
      const otherRegion = { region: regions[check.region].name, baseUrl: deps.baseUrls[check.region] };
      throw refuseAuthentication(ctx, apiError('other_region', otherRegion));
    }
    return fingerprints(bearer, deps.keys.peppers);
  }

  /**
   * Counts the request against the key's limit, and sets the `RateLimit` headers
   * (draft-ietf-httpapi-ratelimit-headers).
   *
   * @throws ApiError `rate_limited` when the key has used up its window.
   */
  async function takeCall(ctx: RequestContext, prints: Buffer[]): Promise<void> {
    // The oldest pepper decides: a key keeps one window while a new pepper is rolled out.
    const decision = await deps.tracing.span('limiter', () => deps.limiter.take(prints.at(-1) as Buffer));
    ctx.set('RateLimit-Policy', limitPolicy);
    ctx.set('RateLimit', `"key";r=${decision.left};t=${decision.resetSeconds}`);
    ctx.state.limitLeft = decision.left;
    if (decision.admitted) return;
    const address = clientAddress(ctx.req, deps.trustedProxies);
    for (const print of prints) deps.refusals.count(print, address);
    ctx.set('Retry-After', String(decision.resetSeconds));
    throw apiError('key_limit', { retryAfterSeconds: decision.resetSeconds });
  }

  return {
    refuseAuthentication,
    identifyKey,
    takeCall,

    /** Refuses a request without a genuine key of this region. No I/O. */
    requireKey(ctx: ReadContext, next: Next): Promise<void> {
      ctx.state.fingerprints = identifyKey(ctx);
      return next();
    },

    /** Refuses a request over the key's limit. One round trip to Redis. */
    async limitCalls(ctx: ReadContext, next: Next): Promise<void> {
      await takeCall(ctx, ctx.state.fingerprints);
      return next();
    },

    /** Returns whether a request carries a bearer in the form of a key, and if it is genuine. */
    bearerKind(ctx: RequestContext): 'none' | 'key' | 'genuine' {
      const bearer = bearerOf(ctx.get('Authorization'));
      if (!bearer?.startsWith('aln_')) return 'none';
      return checkKey(bearer, deps.keys.region, deps.keys.tagSecrets).ok ? 'genuine' : 'key';
    },
  };
}
