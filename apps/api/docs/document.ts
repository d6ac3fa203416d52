/** The parts of the OpenAPI document that the reference shows, with their references resolved. */
import type { openApiDocument } from '../openapi/document.ts';
import { describeBody, describeField, type Field, listFields, type Resolve, type Schema } from './fields.ts';

export interface Example {
  summary: string;
  value: unknown;
}

interface Described {
  id: string;
  summary: string;
  /** Markdown. */
  description: string;
  fields: readonly Field[];
  examples: readonly Example[];
}

export interface Read extends Described {
  path: string;
  /** Markdown: what the fields are of. Empty when they are those of the body. */
  body: string;
}

/** An event; its fields are those of `data`. */
export interface ReferenceEvent extends Described {
  type: string;
}

/** An error response of the reads: a reason with its body. */
export interface ErrorExample {
  status: string;
  code: string;
  when: string;
  body: { error: string; message: string };
}

export interface Reference {
  title: string;
  summary: string;
  version: string;
  /** Markdown, in chapters of first-level headings. */
  introduction: string;
  reads: readonly Read[];
  readParameters: readonly Field[];
  readHeaders: readonly Field[];
  readStatuses: readonly Field[];
  events: readonly ReferenceEvent[];
  eventSummary: string;
  eventHeaders: readonly Field[];
  /** The headers of one delivery, in lines. */
  eventHeaderExample: string;
  /** The body of every event. */
  eventFields: readonly Field[];
  eventStatuses: readonly Field[];
  errorFields: readonly Field[];
  errorExamples: readonly ErrorExample[];
}

/** A header, or a parameter of the path. */
interface Parameter {
  name: string;
  /** Markdown. */
  description: string;
  required?: boolean;
  schema: Schema;
  example: unknown;
}

interface Content {
  schema: Schema;
  examples: Record<string, Example>;
}
interface Body {
  'application/json': Content;
}
interface Response {
  description: string;
  headers?: Record<string, unknown>;
  content?: Body;
}
interface Operation {
  operationId: string;
  summary: string;
  description: string;
  parameters: unknown[];
  requestBody: { content: Body };
  responses: Record<string, Response>;
}

/** Returns what the reference shows of a document. All reads share parameters and errors, and so do all events. */
export function readDocument(document: ReturnType<typeof openApiDocument>): Reference {
  const resolve: Resolve = (value) => {
    const { $ref = '' } = value as { $ref?: string };
    if ($ref === '') return value;
    const names = $ref.split('/').slice(1);
    return names.reduce((part: unknown, name) => (part as Record<string, unknown>)[name], document) as typeof value;
  };
  const parameter = ({ name, schema, description, required = false }: Parameter) =>
    describeField(name, schema, { resolve, isRequired: required, description });
  const statuses = (all: Record<string, Response>): Field[] =>
    Object.entries(all).map(([name, response]) => ({
      name,
      type: '',
      text: resolve(response).description,
      fields: [],
    }));
  const describe = ({ operationId, summary, description }: Operation, { schema, examples }: Content) => ({
    id: operationId,
    summary,
    description,
    fields: listFields(schema, resolve),
    examples: Object.values(examples),
  });
  const gets = Object.entries(document.paths as Record<string, { get: Operation }>);
  const posts = Object.entries(document.webhooks as Record<string, { post: Operation }>);
  const [[, { get }], [, { post }]] = [first(gets), first(posts)];
  const eventHeaders = post.parameters as Parameter[];
  return {
    title: document.info.title,
    summary: document.info.summary,
    version: document.info.version,
    introduction: document.info.description,
    reads: gets.map(([path, { get: operation }]) => {
      const content = getContent(first(Object.values(operation.responses)).content as Body);
      return { ...describe(operation, content), path, body: describeBody(content.schema, resolve) };
    }),
    readParameters: get.parameters.map((each) => parameter(resolve(each) as Parameter)),
    readHeaders: Object.entries(document.components.headers).map(([name, header]) => parameter({ name, ...header })),
    readStatuses: statuses(get.responses),
    events: posts.map(([type, { post: operation }]) => {
      const content = getContent(operation.requestBody.content);
      return {
        ...describe(operation, content),
        type,
        fields: listFields(content.schema.properties?.data ?? {}, resolve),
      };
    }),
    eventSummary: document.tags.at(-1)?.description ?? '',
    eventHeaders: eventHeaders.map(parameter),
    eventHeaderExample: eventHeaders.map(({ name, example }) => `${name}: ${example}`).join('\n'),
    eventFields: listFields(describeEnvelope(getContent(post.requestBody.content).schema), resolve),
    eventStatuses: statuses(post.responses),
    errorFields: listFields({ $ref: '#/components/schemas/ErrorBody' }, resolve),
    errorExamples: Object.entries(get.responses).flatMap(([status, response]) => listErrors(status, resolve(response))),
  };
}

const getContent = ({ 'application/json': content }: Body): Content => content;

/** Returns the body of every event: the members are the same but for the values of `type` and what `data` has. */
function describeEnvelope(envelope: Schema): Schema {
  const type = { type: 'string', description: 'One of the event types.' };
  const data = { type: 'object', description: 'What happened, with the fields of its type.' };
  return { ...envelope, properties: { ...envelope.properties, type, data } };
}

function listErrors(status: string, { content }: Response): ErrorExample[] {
  if (Number(status) < 400 || content === undefined) return [];
  return Object.values(getContent(content).examples).map(({ summary, value }) => {
    const body = value as ErrorExample['body'];
    return { status, code: body.error, when: summary, body };
  });
}

/** @throws Error when there is none: the document always has reads and events. */
function first<T>(all: readonly T[]): T {
  const [one] = all;
  if (one === undefined) throw new Error('The OpenAPI document has no operation.');
  return one;
}
