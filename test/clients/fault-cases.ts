/** What a client does when a server or a proxy misbehaves: one table for each language. */
import { expect } from 'vitest';
import type { ClientSettings, Result } from './driver.ts';
import type { Reply } from './fault-server.ts';

/** A body that no version of the client knows in full. */
const organization = {
  id: '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d',
  kind: 'guild',
  field: { new: ['value', null, 1.5] },
};
const body = JSON.stringify(organization);
const ok: Reply = { status: 200, headers: { ETag: '"a"' }, body };
const success: Result = { data: organization, isUnchanged: false, etag: '"a"' };
const page = '<html>The Rossi family</html>';

const later = (seconds: number): Record<string, string> => ({ 'Retry-After': String(seconds) });
const left = (limit: string): Record<string, string> => ({ ETag: '"a"', RateLimit: `"key";${limit}` });
const limited = (seconds: number): Reply => ({
  status: 429,
  headers: later(seconds),
  body: '{"error":"rate_limited","message":"Too many."}',
});
const unavailable = (seconds: number): Reply => ({
  status: 503,
  headers: { 'Request-Id': 'r1', ...later(seconds) },
  body: '{"error":"unavailable"}',
});
const fail = (code: string, status: number | null = null, retryAfterSeconds: number | null = null): Result => ({
  error: { code, status, requestId: null, retryAfterSeconds },
});

export interface FaultCase {
  /** The guarantee. */
  name: string;
  settings?: ClientSettings;
  replies: readonly Reply[];
  /** Of the calls, one after the other. */
  results: readonly Result[];
  /** The bounds of each wait in seconds. */
  waits?: readonly (readonly [from: number, to: number])[];
  /** Number of requests that the server got; without it, as many as a busy machine sent in time. */
  requests?: number;
}

export const faultCases: readonly FaultCase[] = [
  { name: 'keeps a new value of an enum and a new field', replies: [ok], results: [success], requests: 1 },
  {
    name: 'waits as long as a 429 asks, and at most half a second longer',
    replies: [limited(60), ok],
    results: [success],
    waits: [[60, 60.5]],
    requests: 2,
  },
  {
    name: 'reports a 429 at once that asks to wait an hour',
    replies: [limited(3_600), ok],
    results: [fail('rate_limited', 429, 3_600)],
    requests: 1,
  },
  {
    name: 'never waits longer than maxWait in all',
    replies: [limited(60), limited(40), ok],
    results: [fail('rate_limited', 429, 40)],
    waits: [[60, 60.5]],
    requests: 2,
  },
  {
    name: 'waits as long as is asked, also when that is all that is left of maxWait',
    settings: { maxWaitSeconds: 10 },
    replies: [unavailable(10), ok],
    results: [success],
    waits: [[10, 10]],
    requests: 2,
  },
  {
    name: 'waits after a 429 without retries too, since it is no failure',
    settings: { maxRetries: 0 },
    replies: [limited(1), limited(2), limited(3), ok],
    results: [success],
    waits: [
      [1, 1.5],
      [2, 2.5],
      [3, 3.5],
    ],
    requests: 4,
  },
  {
    name: 'waits a second where a 429 asks for none',
    replies: [limited(0), ok],
    results: [success],
    waits: [[1, 1.5]],
    requests: 2,
  },
  {
    name: 'reads Retry-After as a date',
    replies: [{ status: 503, headers: { 'Retry-After': new Date(Date.now() + 3_600_000_000).toUTCString() } }],
    results: [fail('http_503', 503, expect.closeTo(3_600_000, -4))],
    requests: 1,
  },
  {
    name: 'waits a second where Retry-After is a date that has passed',
    replies: [{ status: 503, headers: { 'Retry-After': 'Thu, 01 Jan 2026 00:00:00 GMT' } }, ok],
    results: [success],
    waits: [[1, 1.5]],
    requests: 2,
  },
  {
    name: 'ignores a Retry-After that is neither seconds nor a date',
    replies: [{ status: 503, headers: { 'Retry-After': 'soon' } }, ok],
    results: [success],
    waits: [[0.5, 1]],
    requests: 2,
  },
  {
    name: 'sends a call again that failed, twice, each time after a longer wait',
    replies: [{ status: 500 }, { status: 502, body: page }, { status: 504, body: 'null' }, ok],
    results: [fail('http_504', 504)],
    waits: [
      [0.5, 1],
      [1, 1.5],
    ],
    requests: 3,
  },
  {
    name: 'counts failures and not 429 against maxRetries',
    settings: { maxRetries: 1 },
    replies: [{ status: 408 }, limited(5), { status: 503 }],
    results: [fail('http_503', 503)],
    waits: [
      [0.5, 1],
      [5, 5.5],
    ],
    requests: 3,
  },
  {
    name: 'does not send a call again that was rejected',
    replies: [{ status: 418, body: page }, ok],
    results: [fail('http_418', 418)],
    requests: 1,
  },
  {
    name: 'waits until the key has a request left, by RateLimit of the response before',
    replies: [
      { ...ok, headers: left('r=0;t=41') },
      { ...ok, headers: left('r=1;t=41') },
    ],
    results: [
      { ...success, rateLimit: { remaining: 0, seconds: 41 } },
      { ...success, rateLimit: { remaining: 1, seconds: 41 } },
      success,
    ],
    waits: [[41, 41]],
    requests: 3,
  },
  {
    name: 'sends at once when it would wait longer than maxWait for a request',
    settings: { maxWaitSeconds: 40 },
    replies: [{ ...ok, headers: left('r=0;t=41') }, limited(41)],
    results: [success, fail('rate_limited', 429, 41)],
    requests: 2,
  },
  ...(['headers', 'body'] as const).map((stall) => ({
    name: `ends an attempt in which the end of the ${stall} does not arrive in time`,
    settings: { timeoutSeconds: 0.3, maxRetries: 1 },
    replies: [{ status: 200, stall }],
    results: [fail('timeout')],
    waits: [[0.5, 1]] as const,
  })),
  {
    name: 'sends a call again whose response was cut',
    replies: [{ status: 200, isCut: true }, ok],
    results: [success],
    waits: [[0.5, 1]],
    requests: 2,
  },
  ...[301, 302, 303, 307, 308].map((status) => ({
    name: `follows no ${status}, because the request has the key`,
    replies: [{ status, headers: { Location: '/elsewhere' } }, ok],
    results: [fail('redirect', status)],
    requests: 1,
  })),
  {
    name: 'reports a 200 that is not JSON without its text, and does not cache it',
    settings: { hasCache: true },
    replies: [{ ...ok, body: page }, ok],
    results: [fail('invalid_response', 200), success],
    requests: 2,
  },
  {
    name: 'reports a 304 that it did not ask for',
    replies: [{ status: 304, headers: { ETag: '"a"' } }],
    results: [fail('http_304', 304)],
    requests: 1,
  },
  {
    name: 'caches no response whose ETag a proxy has removed',
    settings: { hasCache: true },
    replies: [{ status: 200, body }, ok],
    results: [{ ...success, etag: '' }, success],
    requests: 2,
  },
];
