/** The reference as Markdown, and the list of its pages for language models. */

import { regions } from '#domain/contract/regions.ts';
import { versions } from '../openapi/changes.ts';
import { exampleOrgId } from '../openapi/examples.ts';
import type { Read, Reference, ReferenceEvent } from './document.ts';
import type { Installation } from './page.ts';
import { environmentSample, languages, samples } from './samples.ts';
import { tools } from './tools.ts';

const fence = (language: string, code: string): string => `\`\`\`${language}\n${code}\n\`\`\``;
const json = (value: unknown): string => fence('json', JSON.stringify(value, null, 2));
const join = (parts: readonly string[]): string => parts.join('\n\n');

/** Returns one read: path, description, a sample in each language, and example answers. */
export function readMarkdown(read: Read, baseUrl: string): string {
  const code = samples(read, baseUrl);
  return join([
    `### ${read.summary}`,
    `\`GET ${read.path}\` (\`${read.id}\`)`,
    read.description,
    ...languages.map(({ id, fence: language }) => fence(language, code[id])),
    ...read.examples.flatMap(({ summary, value }) => [`${summary}:`, json(value)]),
  ]);
}

/** Returns one event: when it is sent, and an example body. */
export const eventMarkdown = ({ type, id, description, examples }: ReferenceEvent): string =>
  join([
    `### ${type}`,
    `${description} (\`${id}\`)`,
    ...examples.flatMap(({ summary, value }) => [`${summary}:`, json(value)]),
  ]);

/** Returns the whole reference as Markdown. */
export function referenceMarkdown(reference: Reference, { region, baseUrl, isDefaultBaseUrl }: Installation): string {
  const { title, introduction, reads, events, eventHeaders } = reference;
  return `${join([
    `# ${title}`,
    introduction.replaceAll(/^# /gm, '## '),
    '## Reads',
    'Every sample reads these variables:',
    fence('sh', environmentSample(regions[region].keyPrefix, exampleOrgId, isDefaultBaseUrl ? null : baseUrl)),
    ...reads.map((read) => readMarkdown(read, baseUrl)),
    '## Events',
    eventHeaders.map(({ name, description }) => `- \`${name}\`: ${description}`).join('\n'),
    ...events.map(eventMarkdown),
    '## Clients and tools',
    ...tools.flatMap(({ heading, text, code }) => [`### ${heading}`, text, fence('sh', code)]),
    '## Changelog',
    ...versions.map(({ version, changes }) => `### ${version}\n\n${changes.map((each) => `- ${each}`).join('\n')}`),
  ])}\n`;
}

/** Returns `/llms.txt`: what the API is, and where each part of the reference is as Markdown. */
export function llmsText({ title, summary, reads, events }: Reference, baseUrl: string): string {
  const link = (label: string, path: string, text: string) => `- [${label}](${baseUrl}${path}): ${text}`;
  return `${join([
    `# ${title}`,
    `> ${summary}`,
    '## Reference',
    [
      link('Everything', '/docs.md', 'guide, reads, events, error codes and tools in one file'),
      link('OpenAPI 3.1', '/v1/openapi.json', 'the contract'),
      link('Postman collection', '/v1/postman-collection.json', 'the reads, for Postman and what imports its format'),
    ].join('\n'),
    '## Reads',
    reads.map(({ id, summary: text }) => link(id, `/docs/${id}.md`, text)).join('\n'),
    '## Events',
    events.map(({ id, type, summary: text }) => link(type, `/docs/${id}.md`, text)).join('\n'),
  ])}\n`;
}
