import { type ErrorCode, errorStatus } from '#domain/contract/errors.ts';
import { requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import { ErrorBody } from '#domain/contract/resources.ts';
import { answerHeaders, headerComponents } from './headers.ts';
import { schemaReference } from './schemas.ts';

/** One reason for a refusal: when it occurs, and the server's message for it. */
interface Reason {
  code: ErrorCode;
  when: string;
  message: string;
}

/** A status that every read can answer with. */
interface Refusal {
  description: string;
  reasons: Reason[];
  ownHeaders?: Parameters<typeof answerHeaders>;
}

const scope = 'org.clients.read';

/** Refusals and internal errors of every read, by component name. The contract has the statuses. */
function refusals(baseUrls: Record<Region, string>): Record<string, Refusal> {
  return {
    InvalidRequest: {
      description: 'The request is not one that this operation takes.',
      reasons: [
        reason('invalid_request', '`orgId` is not a UUID', 'The organization’s id in the path is not a UUID.'),
        reason('invalid_request', 'A query parameter was sent', 'This read takes no query parameters.'),
      ],
    },
    Unauthenticated: {
      description: 'No key, or one that is not valid on this server; `message` says which.',
      ownHeaders: ['WWW-Authenticate'],
      reasons: [
        reason('unauthenticated', 'No key was sent', 'Send an API key in the header Authorization: Bearer <API_KEY>.'),
        reason('invalid_api_key', 'The key is not a key', 'This is not a valid API key.'),
        reason('invalid_api_key', 'The key was revoked', 'This API key was revoked.'),
        reason('invalid_api_key', 'The key has expired', 'This API key has expired.'),
        reason(
          'invalid_api_key',
          'The key is for the other region',
          `This API key is for ${regions.ca.name}; send it to ${baseUrls.ca}.`,
        ),
      ],
    },
    Forbidden: {
      description: 'The key is valid and may not do this; `message` says why.',
      reasons: [
        reason(
          'insufficient_scope',
          'The key lacks the scope',
          `This API key does not carry the scope ${scope}, which this read needs.`,
        ),
        reason('forbidden', 'The key is for another organization', 'This API key belongs to another organization.'),
        reason(
          'forbidden',
          'The person who created the key left, also if they returned since',
          'The person who created this API key has left the organization. Create a new key; this one stays inactive.',
        ),
        reason(
          'forbidden',
          'The person who created the key is suspended',
          'The person who created this API key is no longer an active member of the organization.',
        ),
        reason(
          'forbidden',
          'The person who created the key lost the permission',
          `The person who created this API key no longer holds ${scope} in the organization.`,
        ),
        reason(
          'api_key_not_accepted',
          'A key was sent with another method than GET',
          'API keys open the GET requests of the organization API and nothing else.',
        ),
      ],
    },
    NotFound: {
      description: 'There is no such organization.',
      reasons: [reason('not_found', 'No such organization', 'There is no organization with this id.')],
    },
    RateLimited: {
      description: 'Too many requests: wait as long as `Retry-After` says.',
      ownHeaders: ['Retry-After'],
      reasons: [
        reason(
          'rate_limited',
          'The key has used up its limit',
          `More than ${requestsPerWindow} requests in ${requestWindowSeconds} seconds with this key. Try again in 7 s.`,
        ),
        reason(
          'rate_limited',
          'The address failed to authenticate too often',
          'Too many failed authentications from this address. Try again in 7 s.',
        ),
      ],
    },
    Internal: {
      description: 'An internal error. Try again; if it persists, quote `requestId` to support.',
      reasons: [reason('internal', 'An internal error', 'An internal error occurred.')],
    },
    Unavailable: {
      description: 'The service cannot answer for a moment: wait as long as `Retry-After` says.',
      ownHeaders: ['Retry-After'],
      reasons: [
        reason('unavailable', 'Out for a moment', 'The service cannot answer right now. Try again in a moment.'),
      ],
    },
  };
}

function reason(code: ErrorCode, when: string, message: string): Reason {
  return { code, when, message };
}

/** Returns every error as a shared response, with an example for each reason. */
export function refusalComponents(baseUrls: Record<Region, string>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(refusals(baseUrls)).map(([name, { description, reasons, ownHeaders = [] }]) => [
      name,
      {
        description,
        headers: answerHeaders(...ownHeaders),
        content: { 'application/json': { schema: schemaReference(ErrorBody), examples: examplesOf(reasons) } },
      },
    ]),
  );
}

/** Returns the error responses of a read by status, as references. */
export function refusalReferences(): Record<string, { $ref: string }> {
  const names = Object.entries(refusals({ us: '', ca: '' }));
  return Object.fromEntries(
    names.map(([name, { reasons }]) => [statusOf(reasons), { $ref: `#/components/responses/${name}` }]),
  );
}

function statusOf([first]: Reason[]): string {
  return String(errorStatus[first?.code ?? 'internal']);
}

function examplesOf(reasons: Reason[]): Record<string, object> {
  return Object.fromEntries(
    reasons.map(({ code, when, message }, index) => {
      const isFault = errorStatus[code] >= 500;
      const value = { error: code, message, ...(isFault ? { requestId: headerComponents['Request-Id'].example } : {}) };
      const others = reasons.slice(0, index).filter((earlier) => earlier.code === code).length;
      return [others === 0 ? code : `${code}_${others + 1}`, { summary: when, value }];
    }),
  );
}
