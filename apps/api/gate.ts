import type { BlockList } from 'node:net';
import type { ParameterizedContext } from 'koa';
import { ApiError } from '#domain/contract/errors.ts';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import type { Region } from '#domain/contract/regions.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/fingerprint.ts';
import { checkKey } from '#domain/keys/format.ts';
import { clientAddress } from '#runtime/address.ts';
import { bearerOf } from '#runtime/bearer.ts';
import type { RefusalCounter } from '#runtime/refusal-counter.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { FailedAuthentications } from './failed-authentications.ts';
import { setLimitHeaders } from './keyed-headers.ts';
import type { Limiter } from './limiter/limiter.ts';
import type { ReadState } from './read-state.ts';
import { refusalOfBearer } from './verdicts.ts';

export interface GateDependencies {
  limiter: Limiter;
  refusals: RefusalCounter;
  failedAuthentications: FailedAuthentications;
  keys: KeySecrets;
  baseUrls: Record<Region, string>;
  trustedProxies: BlockList;
  tracing: Tracing;
}

type Ctx = ParameterizedContext<ReadState>;

/**
 * What stands before the database: a key's form, its region, its limit. Steps 1 and 2 of the
 * design, section 5.
 */
export function createGate(deps: GateDependencies) {
  /** The refusal itself, or 429 once its address has failed too often. */
  function refuseAuthentication(ctx: Ctx, refusal: ApiError): ApiError {
    const waitSeconds = deps.failedAuthentications.count(clientAddress(ctx.req, deps.trustedProxies));
    if (waitSeconds === null) {
      ctx.set('WWW-Authenticate', 'Bearer');
      return refusal;
    }
    ctx.set('Retry-After', String(waitSeconds));
    return new ApiError(
      'rate_limited',
      `Too many failed authentications from this address. Try again in ${waitSeconds} s.`,
    );
  }

  /**
   * @throws ApiError `rate_limited` when the key has used up its window; sets the limit's headers
   * either way.
   */
  async function takeCall(ctx: Ctx, prints: Buffer[]): Promise<void> {
    // The oldest pepper stays longest: under it a key keeps one window while a new pepper is rolled
    // out.
    const verdict = await deps.tracing.span('limiter', () => deps.limiter.take(prints.at(-1) as Buffer));
    setLimitHeaders(ctx, verdict);
    ctx.state.limitLeft = verdict.left;
    if (verdict.admitted) return;
    const address = clientAddress(ctx.req, deps.trustedProxies);
    for (const print of prints) deps.refusals.count(print, address);
    ctx.set('Retry-After', String(verdict.resetSeconds));
    const limit = `${requestsPerWindow} requests in ${requestWindowSeconds} seconds`;
    throw new ApiError('rate_limited', `More than ${limit} with this key. Try again in ${verdict.resetSeconds} s.`);
  }

  return {
    refuseAuthentication,

    /**
     * The fingerprints of a key that is genuine, of this region and within its limit; everything
     * else is refused without asking the database.
     *
     * @throws ApiError `unauthenticated`, `invalid_api_key` or `rate_limited`.
     */
    async admit(ctx: Ctx): Promise<Buffer[]> {
      const bearer = bearerOf(ctx.get('Authorization'));
      if (bearer === null) {
        throw refuseAuthentication(
          ctx,
          new ApiError('unauthenticated', 'Send an API key in the header Authorization: Bearer <API_KEY>.'),
        );
      }
      const check = checkKey(bearer, deps.keys.region, deps.keys.tagSecrets);
      if (!check.ok) throw refuseAuthentication(ctx, refusalOfBearer(check, deps.baseUrls));
      const prints = fingerprints(bearer, deps.keys.peppers);
      await takeCall(ctx, prints);
      return prints;
    },

    /**
     * Whether a request brings anything that says it is an API key, and whether it is one of this
     * region, as far as can be told without I/O.
     */
    bearerKind(ctx: Ctx): 'none' | 'key' | 'genuine' {
      const bearer = bearerOf(ctx.get('Authorization'));
      if (!bearer?.startsWith('aln_')) return 'none';
      return checkKey(bearer, deps.keys.region, deps.keys.tagSecrets).ok ? 'genuine' : 'key';
    },
  };
}
