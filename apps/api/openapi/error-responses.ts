import { type ErrorCode, errorReasons, errorStatus } from '#domain/contract/errors.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import { ErrorBody } from '#domain/contract/resources.ts';
import { headerComponents, responseHeaders } from './headers.ts';
import { schemaReference } from './schemas.ts';

interface Response {
  status: (typeof errorStatus)[ErrorCode];
  description: string;
  ownHeaders?: Parameters<typeof responseHeaders>;
}

/** Error responses of every read, by component name; the reasons of each are those of its status. */
const responses: Record<string, Response> = {
  InvalidRequest: { status: 400, description: 'The request is not one that this operation takes.' },
  Unauthenticated: {
    status: 401,
    description: 'No key, or one that is not valid on this server; `message` says which.',
    ownHeaders: ['WWW-Authenticate'],
  },
  Forbidden: { status: 403, description: 'The key is valid and may not do this; `message` says why.' },
  NotFound: { status: 404, description: 'There is no such organization.' },
  RateLimited: {
    status: 429,
    description: 'Too many requests: wait as long as `Retry-After` says.',
    ownHeaders: ['Retry-After'],
  },
  Internal: {
    status: 500,
    description: 'An internal error. Try again; if it persists, quote `requestId` to support.',
  },
  Unavailable: {
    status: 503,
    description: 'The service cannot answer for a moment: wait as long as `Retry-After` says.',
    ownHeaders: ['Retry-After'],
  },
};

/** Returns every error as a shared response, with an example for each reason. */
export function errorComponents(baseUrls: Record<Region, string>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([name, { status, description, ownHeaders = [] }]) => [
      name,
      {
        description,
        headers: responseHeaders(...ownHeaders),
        content: {
          'application/json': { schema: schemaReference(ErrorBody), examples: buildExamples(status, baseUrls) },
        },
      },
    ]),
  );
}

/** Returns the error responses of a read by status, as references. */
export function errorReferences(): Record<string, { $ref: string }> {
  return Object.fromEntries(
    Object.entries(responses).map(([name, { status }]) => [status, { $ref: `#/components/responses/${name}` }]),
  );
}

function buildExamples(status: number, baseUrls: Record<Region, string>): Record<string, object> {
  const values = { scope: 'org.clients.read', region: regions.ca.name, baseUrl: baseUrls.ca, retryAfterSeconds: 7 };
  const examples: Record<string, object> = {};
  for (const { code, when, message } of Object.values(errorReasons)) {
    if (when === null || errorStatus[code] !== status) continue;
    const id = status >= 500 ? { requestId: headerComponents['Request-Id'].example } : {};
    const others = Object.keys(examples).filter((name) => name.startsWith(code)).length;
    const name = others === 0 ? code : `${code}_${others + 1}`;
    examples[name] = { summary: when, value: { error: code, message: message(values), ...id } };
  }
  return examples;
}
