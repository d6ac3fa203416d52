import type { Context } from 'koa';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import type { LimitVerdict } from './limiter/limiter.ts';

const policy = `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`;

/**
 * The headers of every keyed answer that the limiter has judged (design, section 5). `RateLimit`
 * says how many calls are left and in how many seconds one more comes free; on a refusal that is
 * `Retry-After` too, and a promise. Names and form: draft-ietf-httpapi-ratelimit-headers.
 */
export function setLimitHeaders(ctx: Context, verdict: LimitVerdict): void {
  ctx.set('RateLimit-Policy', policy);
  ctx.set('RateLimit', `"key";r=${verdict.left};t=${verdict.resetSeconds}`);
}

/**
 * No shared cache may keep an answer, and no cache may use one without asking again: a revoked key
 * must not find yesterday's.
 */
export function setPrivate(ctx: Context): void {
  ctx.set('Cache-Control', 'private, no-cache');
  ctx.set('Vary', 'Authorization');
}
