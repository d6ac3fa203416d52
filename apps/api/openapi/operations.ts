import type { Scope } from '#domain/contract/scopes.ts';
import type { Endpoint } from '../endpoints.ts';
import { errorReferences } from './error-responses.ts';
import { responseExamples } from './examples.ts';
import { responseHeaders } from './headers.ts';
import { schemaReference } from './schemas.ts';

/** The tags of the reads, with a sentence each. A read's scope determines its tag. */
const tagDescriptions = {
  Organization: 'The organization’s own record.',
  Clients: 'Client families: names and dates only.',
  Members: 'The people of the organization, and what their roles allow.',
  Outcomes: 'De-identified figures across all client families together.',
  Referrals: 'Referral codes and what they earned.',
  Seats: 'Seats and the subscriptions that pay for them.',
};

/** `tags` of the reads, in the order of the page. */
export const readTags = Object.entries(tagDescriptions).map(([name, description]) => ({ name, description }));

const tagOfScope: Record<Scope, keyof typeof tagDescriptions> = {
  'org.read': 'Organization',
  'org.clients.read': 'Clients',
  'org.members.read': 'Members',
  'org.analytics.read': 'Outcomes',
  'org.referrals.manage': 'Referrals',
  'org.roles.read': 'Members',
  'org.billing.manage': 'Seats',
};

/**
 * Returns `paths`: one GET for each declared read.
 *
 * @throws Error when a read has no example.
 */
export function pathItems(endpoints: readonly Endpoint[]): Record<string, object> {
  return Object.fromEntries(
    endpoints.map((endpoint) => [`/v1/orgs/{orgId}${endpoint.resource}`, { get: operation(endpoint) }]),
  );
}

function operation(endpoint: Endpoint): object {
  const { operationId, summary, description, scope, response } = endpoint;
  const examples = responseExamples[operationId];
  if (examples === undefined)
    throw new Error(`${operationId} has no example: add one to apps/api/openapi/examples.ts.`);
  return {
    operationId,
    summary,
    description: `${description}\n\nThe key needs the scope \`${scope}\`.`,
    tags: [tagOfScope[scope]],
    // OpenAPI 3.1 could list it in `security`; Spectral's recommended rules allow that only for
    // OAuth.
    'x-required-scope': scope,
    parameters: [{ $ref: '#/components/parameters/orgId' }, { $ref: '#/components/parameters/If-None-Match' }],
    responses: {
      '200': {
        description: 'The answer.',
        headers: responseHeaders('ETag', 'Content-Encoding'),
        content: { 'application/json': { schema: schemaReference(response), examples } },
      },
      '304': { $ref: '#/components/responses/NotModified' },
      ...errorReferences(),
    },
  };
}

/** The shared response of a read that has not changed. */
export const notModified = {
  description: 'The answer is the one whose `ETag` was sent. The request counts against the limit.',
  headers: responseHeaders('ETag'),
};
