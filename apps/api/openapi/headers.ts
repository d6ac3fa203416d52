import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';

/**
 * The headers of the responses, by name: `components.headers`. Those that are not `required` are
 * absent on requests that were rejected early: the limiter counts only a well-formed key of this
 * region, in a request that is valid HTTP.
 */
export const headerComponents = {
  'Request-Id': {
    description:
      'Id of this request: quote it when asking for help. For a key that the server knows it is ' +
      'also the id of the line in the organization’s audit log, except for 429, 500, 503 and ' +
      'requests that are not valid HTTP.',
    required: true,
    schema: { type: 'string', format: 'uuid' },
    example: '019a9f2e-7c41-7d36-9a0b-3f5a5d2c8e11',
  },
  'Cache-Control': {
    description: 'No shared cache may keep the answer, and no cache may use it without asking again.',
    required: true,
    schema: { type: 'string' },
    example: 'private, no-cache',
  },
  Vary: {
    description: 'The answer depends on the key and on the encodings that the client accepts.',
    required: true,
    schema: { type: 'string' },
    example: 'Authorization, Accept-Encoding',
  },
  'RateLimit-Policy': {
    description:
      `The limit of every key: \`q\` requests in any \`w\` seconds. On every answer to a well-formed ` +
      'key of this region, unless the request is not valid HTTP.',
    schema: { type: 'string' },
    example: `"key";q=${requestsPerWindow};w=${requestWindowSeconds}`,
  },
  RateLimit: {
    description:
      '`r`: requests left to the key now; `t`: seconds until one more comes free. On every answer ' +
      'to a well-formed key of this region, unless the request is not valid HTTP.',
    schema: { type: 'string', pattern: '^"key";r=\\d+;t=\\d+$' },
    example: `"key";r=${requestsPerWindow - 1};t=${requestWindowSeconds}`,
  },
  'Key-Expires': {
    description: 'When the key expires. Only for a key that has an expiry.',
    schema: { type: 'string', format: 'date-time' },
    example: '2027-02-18T00:00:00.000Z',
  },
  ETag: {
    description:
      'On 200 and 304. Changes when the answer does, and is the same for all keys of the organization. It is weak ' +
      '(`W/`) on an encoded answer. Send it back in `If-None-Match`, in either form.',
    required: true,
    schema: { type: 'string' },
    example: '"k2Xc1mFvRkq0bTn7oZr3Zw"',
  },
  'Content-Encoding': {
    description:
      'The encoding of the body that `Accept-Encoding` asked for. Absent on a body of less than 1,400 bytes, ' +
      'unless `identity;q=0` rejects one without an encoding.',
    schema: { type: 'string', enum: ['br', 'gzip'] },
    example: 'gzip',
  },
  'WWW-Authenticate': {
    description: 'How to authenticate. On 401.',
    required: true,
    schema: { type: 'string' },
    example: 'Bearer',
  },
  'Retry-After': {
    description:
      'Whole seconds to wait. On 429 and 503. When the key’s limit was the reason, a lone caller that waits this ' +
      'long is admitted.',
    required: true,
    schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 2_147_483_647 },
    example: 7,
  },
};

type HeaderName = keyof typeof headerComponents;

const ofEveryResponse: HeaderName[] = [
  'Request-Id',
  'Cache-Control',
  'Vary',
  'RateLimit-Policy',
  'RateLimit',
  'Key-Expires',
];

/**
 * Returns the headers of one response of a read, as references: those of every response, then its
 * own.
 */
export function responseHeaders(...own: HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    [...ofEveryResponse, ...own].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}
