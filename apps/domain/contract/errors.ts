import { requestsPerWindow, requestWindowSeconds } from './limits.ts';

/** Every error code with its HTTP status. Only `internal` and `unavailable` are the service's. */
export const errorStatus = {
  invalid_request: 400,
  unauthenticated: 401,
  invalid_api_key: 401,
  insufficient_scope: 403,
  forbidden: 403,
  api_key_not_accepted: 403,
  not_found: 404,
  method_not_allowed: 405,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

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
  unknown_path: { code: 'not_found', when: null, message: () => 'There is nothing at this path.' },
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
