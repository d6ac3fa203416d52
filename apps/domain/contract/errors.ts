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
