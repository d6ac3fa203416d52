import { exampleOrgId } from '../openapi/examples.ts';
import type { Read, Reference } from './document.ts';

/** The schema of Postman collections, which Postman, Insomnia, Bruno and newman import. */
const schema = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/**
 * Returns the text of a Postman collection of the reads. The key is a variable without a value, which the reader's own
 * environment sets: a collection is shared.
 */
export function postmanCollection({ title, summary, version, reads }: Reference, baseUrl: string): string {
  const collection = {
    info: { name: title, description: summary, version, schema },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{apiKey}}', type: 'string' }] },
    variable: [
      { key: 'baseUrl', value: baseUrl },
      { key: 'orgId', value: exampleOrgId },
      { key: 'apiKey', value: '', type: 'secret' },
    ],
    item: reads.map(request),
  };
  return `${JSON.stringify(collection, null, 2)}\n`;
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
