import type { Read, Reference } from './document.ts';

/** The schema of Postman collections, which Postman, Insomnia, Bruno and newman import. */
const schema = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/**
 * Returns the reads as a Postman collection. The key is a variable without a value, which the reader's own environment
 * sets: a collection is shared.
 */
export function postmanCollection(
  { title, summary, version, reads }: Reference,
  baseUrl: string,
  orgId: string,
): object {
  return {
    info: { name: title, description: summary, version, schema },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{apiKey}}', type: 'string' }] },
    variable: [
      { key: 'baseUrl', value: baseUrl },
      { key: 'orgId', value: orgId },
      { key: 'apiKey', value: '', type: 'secret' },
    ],
    item: reads.map(request),
  };
}

function request({ id, path, summary, description }: Read): object {
  const segments = path.split('/').slice(1);
  return {
    name: summary,
    id,
    request: {
      method: 'GET',
      description,
      header: [],
      url: {
        raw: `{{baseUrl}}${path.replace('{orgId}', '{{orgId}}')}`,
        host: ['{{baseUrl}}'],
        path: segments.map((segment) => (segment === '{orgId}' ? '{{orgId}}' : segment)),
      },
    },
    event: [
      {
        listen: 'test',
        script: {
          type: 'text/javascript',
          exec: ["pm.test('Status 200', () => pm.response.to.have.status(200));"],
        },
      },
    ],
  };
}
