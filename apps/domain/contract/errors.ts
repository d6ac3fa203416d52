/**
 * Every refusal the API answers with, and its HTTP status: the closed list of the API document,
 * section 7, completed where it is silent (design, section 5): `invalid_request` is the value for
 * 400, `method_not_allowed` the one for 405, and `internal` and `unavailable` are faults of ours,
 * which carry a `requestId` too.
 */
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
 * A refusal or fault on its way to the client. `message` is public: it never holds a key, a name or
 * an internal detail; `cause` is for the log.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, publicMessage: string, options?: { cause?: unknown }) {
    super(publicMessage, options);
    this.name = 'ApiError';
    this.code = code;
  }

  get status(): number {
    return errorStatus[this.code];
  }
}
