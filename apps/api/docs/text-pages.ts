/** The reference as Markdown, and the list of its pages for language models. */

import { regions } from '#domain/contract/regions.ts';
import { versions } from '../openapi/changes.ts';
import { exampleOrgId } from '../openapi/examples.ts';
import type { Example, Read, Reference, ReferenceEvent } from './document.ts';
import type { Field } from './fields.ts';
import type { Installation } from './page.ts';
import { environmentSample, languages, samples } from './samples.ts';
import { tools, toolsText } from './tools.ts';

const fence = (language: string, code: string): string => `\`\`\`${language}\n${code}\n\`\`\``;
const json = (value: unknown): string => fence('json', JSON.stringify(value, null, 2));
const join = (parts: readonly string[]): string => parts.join('\n\n');

/** Lists fields, each with its own below it. */
const fieldLines = (all: readonly Field[], indent = ''): string =>
  all
    .map(({ name, type, text, fields }) => {
      const line = `${indent}- \`${name}\`${type && ` (${type})`}${text && `: ${text}`}`;
      return fields.length === 0 ? line : `${line}\n${fieldLines(fields, `${indent}  `)}`;
    })
    .join('\n');

const listExamples = (examples: readonly Example[]): string[] =>
  examples.flatMap(({ summary, value }) => [`${summary}:`, json(value)]);

const listSamples = (read: Read): string[] => {
  const code = samples(read);
  return languages.map(({ id, fence: language }) => fence(language, code[id]));
};

/** Returns one read: path, description, fields of its response, example responses, and a sample in each language. */
export const readMarkdown = (read: Read): string =>
  join([
    `### ${read.summary}`,
    `\`GET ${read.path}\` (\`${read.id}\`)`,
    read.description,
    read.body || 'The response has:',
    fieldLines(read.fields),
    ...listExamples(read.examples),
    ...listSamples(read),
  ]);

/** Returns what all reads have in common. */
export const readsMarkdown = (reference: Reference, { region, baseUrls }: Installation): string =>
  join([
    '## Reads',
    'Each is a `GET` request without a body and without query parameters.',
    '### Parameters',
    fieldLines(reference.readParameters),
    '### Response headers',
    fieldLines(reference.readHeaders),
    '### Statuses',
    fieldLines(reference.readStatuses),
    '### Samples',
    'Every sample reads these variables:',
    fence('sh', environmentSample(regions[region].keyPrefix, exampleOrgId, baseUrls[region])),
  ]);

/** Returns one event: when it is sent, the fields of its data, and an example body. */
export const eventMarkdown = ({ type, id, description, fields, examples }: ReferenceEvent): string =>
  join([`### ${type}`, `${description} (\`${id}\`)`, '`data` has:', fieldLines(fields), ...listExamples(examples)]);

/** Returns what all events have in common. */
export const eventsMarkdown = (reference: Reference): string =>
  join([
    '## Events',
    `${reference.eventSummary} Each is a \`POST\` request.`,
    '### Headers of a delivery',
    fieldLines(reference.eventHeaders),
    fence('http', reference.eventHeaderExample),
    '### Body of an event',
    fieldLines(reference.eventFields),
    '### Your response',
    fieldLines(reference.eventStatuses),
  ]);

const errorsMarkdown = ({ errorFields, errorExamples }: Reference): string =>
  join([
    '## Error responses',
    'Every error response has:',
    fieldLines(errorFields),
    'When each is sent, and an example of its message:',
    errorExamples
      .map(({ status, code, when, body }) => `- ${status} \`${code}\`: ${when}. “${body.message}”`)
      .join('\n'),
  ]);

/** Returns the whole reference as Markdown. */
export function referenceMarkdown(reference: Reference, installation: Installation): string {
  const { title, introduction, reads, events } = reference;
  return `${join([
    `# ${title}`,
    introduction.replaceAll(/^# /gm, '## '),
    readsMarkdown(reference, installation),
    ...reads.map(readMarkdown),
    eventsMarkdown(reference),
    ...events.map(eventMarkdown),
    errorsMarkdown(reference),
    '## Clients and tools',
    toolsText,
    ...tools.flatMap(({ heading, text, code }) => [`### ${heading}`, text, fence('sh', code)]),
    '## Changelog',
    ...versions.map(({ version, changes }) => `### ${version}\n\n${changes.map((each) => `- ${each}`).join('\n')}`),
  ])}\n`;
}

/** Returns the page of one part: the part, what all of its kind have in common, and where the rest is. */
export const partMarkdown = (part: string, common: string, baseUrl: string): string =>
  `${join([part, common, `The guide, the error codes and the other parts are in ${baseUrl}/docs.md.`])}\n`;

/** Returns `/llms.txt`: what the API is, and where each part of the reference is as Markdown. */
export function llmsText({ title, summary, reads, events }: Reference, baseUrl: string): string {
  const link = (label: string, path: string, text: string) => `- [${label}](${baseUrl}${path}): ${text}`;
  return `${join([
    `# ${title}`,
    `> ${summary}`,
    '## Reference',
    [
      link('Everything', '/docs.md', 'guide, reads and events with all fields, error codes and tools in one file'),
      link('OpenAPI 3.1', '/v1/openapi.json', 'the contract'),
      link('Postman collection', '/v1/postman-collection.json', 'the reads, for Postman and what imports its format'),
    ].join('\n'),
    '## Reads',
    reads.map(({ id, summary: text }) => link(id, `/docs/${id}.md`, text)).join('\n'),
    '## Events',
    events.map(({ id, type, summary: text }) => link(type, `/docs/${id}.md`, text)).join('\n'),
  ])}\n`;
}
