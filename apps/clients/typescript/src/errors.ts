import { type ErrorCode, servers } from './generated.ts';

/**
 * The server's `error`, or why it gave none: `timeout` (no complete response in `timeoutMs`),
 * `connection`, `redirect` (none is followed, because the request has the key), `invalid_response`
 * (a 200 that is not JSON) or `http_STATUS` (an error that is not the API's, such as a proxy's page).
 */
export type OrgApiErrorCode =
  | ErrorCode
  | 'timeout'
  | 'connection'
  | 'redirect'
  | 'invalid_response'
  | `http_${number}`
  | (string & {});

interface Details {
  message: string;
  status?: number;
  requestId?: string | null;
  retryAfterSeconds?: number | null;
  cause?: unknown;
}

/** The one error of the client. Decide by `code`; the message is for people and has no data. */
export class OrgApiError extends Error {
  readonly code: OrgApiErrorCode;
  /** Status of the response; null without one. */
  readonly status: number | null;
  readonly requestId: string | null;
  /** How long the server asks to wait. */
  readonly retryAfterSeconds: number | null;

  constructor(code: OrgApiErrorCode, details: Details) {
    const { message, cause } = details;
    super(message, cause === undefined ? {} : { cause });
    this.name = 'OrgApiError';
    this.code = code;
    this.status = details.status ?? null;
    this.requestId = details.requestId ?? null;
    this.retryAfterSeconds = details.retryAfterSeconds ?? null;
  }
}

/** Returns the error for a server that gave no response. */
export function describeSilence(code: 'timeout' | 'connection', baseUrl: string, cause: unknown): OrgApiError {
  const hint = Object.values<string>(servers).includes(baseUrl)
    ? ' The prefix of the key names this server; for another, set ORG_API_BASE_URL.'
    : '';
  return new OrgApiError(code, { message: `No response of ${new URL(baseUrl).host} (${code}).${hint}`, cause });
}

/** Browsers show a redirect that is not followed as 0. */
const redirects = [0, 301, 302, 303, 307, 308];

/** Returns the error for a response that is no success. */
export function describeError(status: number, headers: Headers, body: string): OrgApiError {
  const { error, message, requestId = headers.get('Request-Id') } = readErrorBody(body);
  const code = error ?? (redirects.includes(status) ? 'redirect' : `http_${status}`);
  const request = requestId === null ? '' : ` (request ${requestId})`;
  return new OrgApiError(code, {
    message: `${status} ${code}: ${message ?? 'no message'}${request}`,
    status,
    requestId,
    retryAfterSeconds: parseRetryAfter(headers.get('Retry-After')),
  });
}

/** A body that is not the API's, such as a proxy's page, has no fields. */
function readErrorBody(body: string): { error?: string; message?: string; requestId?: string } {
  try {
    const parsed = JSON.parse(body) as Record<string, unknown> | null;
    const texts = Object.entries(parsed ?? {}).filter(([, value]) => typeof value === 'string');
    return Object.fromEntries(texts);
  } catch {
    return {};
  }
}

/** Returns the seconds of `Retry-After`, which a proxy may send as a date; null for neither. */
function parseRetryAfter(value: string | null): number | null {
  if (value === null) return null;
  const seconds = /^\d+$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - Date.now()) / 1_000);
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}
