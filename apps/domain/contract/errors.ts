import { requestsPerWindow, requestWindowSeconds } from './limits.ts';

/** Every error code with its HTTP status. Only `internal` and `unavailable` are the service's. */
export const errorStatus = {
  invalid_request: 400,
  unauthenticated: 401,
  invalid_api_key: 401,
  insufficient_scope: 403,
  forbidden: 403,
  address_not_allowed: 403,
  api_key_not_accepted: 403,
  not_found: 404,
  method_not_allowed: 405,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

/** Every code, in the order of the reference. */
export const errorCodes = Object.keys(errorStatus) as ErrorCode[];

/** What a code means and what a partner does about it, each in a sentence or two of Markdown. */
interface ErrorHelp {
  meaning: string;
  remedy: string;
}

/** The help for every code. A new code does not compile without one. */
export const errorHelp: Readonly<Record<ErrorCode, ErrorHelp>> = {
  invalid_request: {
    meaning: 'The organization’s id is not a UUID, or a query parameter was sent; with 408, 417 or 431: not valid HTTP',
    remedy: 'Correct the request. Sending it again as it is gives the same answer.',
  },
  unauthenticated: {
    meaning: 'No key was sent',
    remedy: 'Send the key in the header `Authorization: Bearer …`. A redirect or a proxy may have removed it.',
  },
  invalid_api_key: {
    meaning: 'The key is not valid, revoked, expired, or for the other region; `message` says which',
    remedy:
      'Compare the key with the one that the console showed, or send it to the server of its region. For a key that ' +
      'was revoked or has expired, ask the organization for a new one.',
  },
  insufficient_scope: {
    meaning: 'The key lacks the scope that the read needs',
    remedy: 'Ask the organization for a key with the scope that `message` names. Scopes of a key never change.',
  },
  forbidden: {
    meaning: 'The key is for another organization, or the person who created it can no longer do this',
    remedy:
      'Check that the id in the path is that of the key’s organization. Otherwise `message` says what the key’s ' +
      'creator has lost: a person who may do this creates a new key.',
  },
  address_not_allowed: {
    meaning: 'The organization restricts the key to IP addresses, and the request came from another one',
    remedy:
      'Send the request from an address that the key allows, or ask the organization to add yours: its people see ' +
      'both in the console. A proxy or a new network may have changed your address.',
  },
  api_key_not_accepted: {
    meaning: 'A key was sent to something that is not a read of this API',
    remedy: 'Use `GET` and a path of this reference. A key opens nothing else.',
  },
  not_found: {
    meaning: 'There is no such organization, or nothing at this path',
    remedy: 'Check the path and the id. The organization’s people see the id in the console.',
  },
  method_not_allowed: {
    meaning: 'Another method than GET, without a key',
    remedy: 'Use `GET`. The API changes nothing.',
  },
  rate_limited: {
    meaning: 'Too many requests: wait as long as `Retry-After` says',
    remedy: 'Wait as long as `Retry-After` says, then send the request again. `RateLimit` of each answer helps before.',
  },
  internal: {
    meaning: 'An internal error; quote `requestId`',
    remedy: 'Try again after a moment, at most a few times. If it persists, quote `requestId` to support.',
  },
  unavailable: {
    meaning: 'Temporarily unavailable: wait as long as `Retry-After` says',
    remedy: 'Wait as long as `Retry-After` says, then send the request again. It lasts seconds in most cases.',
  },
};

/** What messages of errors name. */
export interface ErrorValues {
  scope: string;
  /** The name and the base URL of the region that a key is for. */
  region: string;
  baseUrl: string;
  retryAfterSeconds: number;
}

interface ErrorReason {
  code: ErrorCode;
  /** When it occurs, for the OpenAPI document; null: not a response of a documented read. */
  when: string | null;
  message: (values: ErrorValues) => string;
}

/**
 * Every reason for an error response, by name; in the order of the OpenAPI document, which shows
 * those with `when` as examples. Decisions of a read's statement are names of reasons.
 */
export const errorReasons = {
  not_a_uuid: {
    code: 'invalid_request',
    when: '`orgId` is not a UUID',
    message: () => 'The organization’s id in the path is not a UUID.',
  },
  query_sent: {
    code: 'invalid_request',
    when: 'A query parameter was sent',
    message: () => 'This read takes no query parameters.',
  },
  no_key: {
    code: 'unauthenticated',
    when: 'No key was sent',
    message: () => 'Send an API key in the header Authorization: Bearer <API_KEY>.',
  },
  not_a_key: { code: 'invalid_api_key', when: 'The key is not a key', message: () => 'This is not a valid API key.' },
  unknown_key: { code: 'invalid_api_key', when: null, message: () => 'This API key is not known here.' },
  revoked: { code: 'invalid_api_key', when: 'The key was revoked', message: () => 'This API key was revoked.' },
  expired: { code: 'invalid_api_key', when: 'The key has expired', message: () => 'This API key has expired.' },
  other_region: {
    code: 'invalid_api_key',
    when: 'The key is for the other region',
    message: ({ region, baseUrl }: Pick<ErrorValues, 'region' | 'baseUrl'>) =>
      `This API key is for ${region}; send it to ${baseUrl}.`,
  },
  address_not_allowed: {
    code: 'address_not_allowed',
    when: 'The key may not be used from this address',
    message: () => 'This API key may not be used from this IP address. The organization can change which are allowed.',
  },
  scope_missing: {
    code: 'insufficient_scope',
    when: 'The key lacks the scope',
    message: ({ scope }: Pick<ErrorValues, 'scope'>) =>
      `This API key does not carry the scope ${scope}, which this read needs.`,
  },
  other_organization: {
    code: 'forbidden',
    when: 'The key is for another organization',
    message: () => 'This API key belongs to another organization.',
  },
  creator_left: {
    code: 'forbidden',
    when: 'The person who created the key left, also if they returned since',
    message: () =>
      'The person who created this API key has left the organization. Create a new key; this one stays inactive.',
  },
  creator_inactive: {
    code: 'forbidden',
    when: 'The person who created the key is suspended',
    message: () => 'The person who created this API key is no longer an active member of the organization.',
  },
  creator_not_permitted: {
    code: 'forbidden',
    when: 'The person who created the key lost the permission',
    message: ({ scope }: Pick<ErrorValues, 'scope'>) =>
      `The person who created this API key no longer holds ${scope} in the organization.`,
  },
  key_with_other_method: {
    code: 'api_key_not_accepted',
    when: 'A key was sent with another method than GET',
    message: () => 'API keys open the GET requests of the organization API and nothing else.',
  },
  no_organization: {
    code: 'not_found',
    when: 'No such organization',
    message: () => 'There is no organization with this id.',
  },
  unknown_path: {
    code: 'not_found',
    when: null,
    message: () => 'There is nothing at this path. The reference is at /docs.',
  },
  other_method: { code: 'method_not_allowed', when: null, message: () => 'Only GET is possible here.' },
  key_limit: {
    code: 'rate_limited',
    when: 'The key has used up its limit',
    message: ({ retryAfterSeconds }: Pick<ErrorValues, 'retryAfterSeconds'>) =>
      `More than ${requestsPerWindow} requests in ${requestWindowSeconds} seconds with this key. ` +
      `Try again in ${retryAfterSeconds} s.`,
  },
  failed_authentications: {
    code: 'rate_limited',
    when: 'The address failed to authenticate too often',
    message: ({ retryAfterSeconds }: Pick<ErrorValues, 'retryAfterSeconds'>) =>
      `Too many failed authentications from this address. Try again in ${retryAfterSeconds} s.`,
  },
  internal: { code: 'internal', when: 'An internal error', message: () => 'An internal error occurred.' },
  unavailable: {
    code: 'unavailable',
    when: 'Out for a moment',
    message: () => 'The service cannot answer right now. Try again in a moment.',
  },
} as const satisfies Record<string, ErrorReason>;

export type ErrorReasonName = keyof typeof errorReasons;

/**
 * An error that a client gets. `message` is public, without keys or names; `cause` is logged.
 * `status` is the code's, except for faults of HTTP itself, which have their own.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;

  constructor(code: ErrorCode, publicMessage: string, options: { cause?: unknown; status?: number } = {}) {
    super(publicMessage, options);
    this.name = 'ApiError';
    this.code = code;
    this.status = options.status ?? errorStatus[code];
  }
}

/** Returns the error for a reason; `values` are those that its message names. */
export function apiError<Name extends ErrorReasonName>(
  name: Name,
  ...[values, cause]: Parameters<(typeof errorReasons)[Name]['message']> extends [infer Values]
    ? [values: Values, cause?: unknown]
    : [values?: Partial<ErrorValues> | null, cause?: unknown]
): ApiError {
  const { code, message }: ErrorReason = errorReasons[name];
  return new ApiError(code, message(values as ErrorValues), cause === undefined ? {} : { cause });
}
