import { ApiError } from '#domain/contract/errors.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import type { Verdict } from '#domain/db/statements/authorized.ts';
import type { KeyCheck } from '#domain/keys/format.ts';

/**
 * The refusal for each verdict of a read's statement but `ok`; messages say which of several causes
 * it was (API document, section 7). `malformed` is what the request itself was found to be, so its
 * message is the caller's.
 */
export function refusalOf(verdict: Exclude<Verdict, 'ok'>, scope: Scope, malformed: string): ApiError {
  switch (verdict) {
    case 'revoked':
      return new ApiError('invalid_api_key', 'This API key was revoked.');
    case 'expired':
      return new ApiError('invalid_api_key', 'This API key has expired.');
    case 'malformed':
      return new ApiError('invalid_request', malformed);
    case 'scope_missing':
      return new ApiError(
        'insufficient_scope',
        `This API key does not carry the scope ${scope}, which this read needs.`,
      );
    case 'no_organization':
      return new ApiError('not_found', 'There is no organization with this id.');
    case 'other_organization':
      return new ApiError('forbidden', 'This API key belongs to another organization.');
    case 'maker_left':
      return new ApiError(
        'forbidden',
        'The person who created this API key has left the organization. Create a new key; this one stays inactive.',
      );
    case 'maker_inactive':
      return new ApiError(
        'forbidden',
        'The person who made this API key is no longer an active member of the organization.',
      );
    case 'maker_not_permitted':
      return new ApiError(
        'forbidden',
        `The person who made this API key no longer holds ${scope} in the organization.`,
      );
  }
}

/**
 * The refusal of a bearer that is no key of this region, told without I/O. A key of the other
 * region is told where to go.
 */
export function refusalOfBearer(check: Exclude<KeyCheck, { ok: true }>, baseUrls: Record<Region, string>): ApiError {
  if (check.reason === 'malformed') return new ApiError('invalid_api_key', 'This is not a valid API key.');
  const { name } = regions[check.region];
  return new ApiError('invalid_api_key', `This API key is for ${name}; send it to ${baseUrls[check.region]}.`);
}
