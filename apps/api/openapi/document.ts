import { type Region, regionCodes, regions } from '#domain/contract/regions.ts';
import { endpoints } from '../endpoints.ts';
import { versions } from './changes.ts';
import { errorComponents } from './error-responses.ts';
import { exampleOrgId } from './examples.ts';
import { headerComponents } from './headers.ts';
import { introduction } from './introduction.ts';
import { notModified, pathItems, readTags } from './operations.ts';
import { schemaComponents } from './schemas.ts';
import { eventTag, receiverResponses, webhooks } from './webhooks.ts';

/**
 * Returns the OpenAPI 3.1 document of the API: nine reads and seven events, generated from the
 * declarations that serve them. It is the same for the same base URLs at any time and place, so
 * that a copy can be committed and compared.
 */
export function openApiDocument({ baseUrls }: { baseUrls: Record<Region, string> }) {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Organization API',
      version: versions[0].version,
      summary: 'One organization’s own data: nine reads and seven events.',
      description: introduction(baseUrls),
      contact: { name: 'Organization API', url: `${baseUrls.us}/docs` },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: regionCodes.map((region) => ({
      url: baseUrls[region],
      description: `${regions[region].name}: keys that begin with ${regions[region].keyPrefix}`,
    })),
    security: [{ apiKey: [] }],
    tags: [...readTags, eventTag],
    paths: pathItems(endpoints),
    webhooks: webhooks(),
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: `${regions.us.keyPrefix}… or ${regions.ca.keyPrefix}…`,
          description: 'A key of the organization, created in the console, on the server of its region.',
        },
      },
      parameters: requestParameters,
      headers: headerComponents,
      responses: { NotModified: notModified, ...errorComponents(baseUrls), ...receiverResponses },
      schemas: schemaComponents(),
    },
  };
}

const requestParameters = {
  orgId: {
    name: 'orgId',
    in: 'path',
    required: true,
    description: 'The id of the organization. Every event carries it too.',
    schema: { type: 'string', format: 'uuid' },
    example: exampleOrgId,
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    required: false,
    description: 'The `ETag` of an earlier answer: 304 without a body if nothing has changed.',
    schema: { type: 'string' },
    example: headerComponents.ETag.example,
  },
};

/** Returns the document as text, byte for byte what is served and committed. */
export function openApiText(baseUrls: Record<Region, string>): string {
  return `${JSON.stringify(openApiDocument({ baseUrls }), null, 2)}\n`;
}
