/** The parts of the OpenAPI document that the reference shows, with their references resolved. */
import type { openApiDocument } from '../openapi/document.ts';

/** A JSON Schema of the document, as far as it uses the keywords. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  const?: unknown;
  enum?: string[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
}

export interface Example {
  summary: string;
  value: unknown;
}

/** A body in JSON. */
interface Content {
  schema: Schema;
  examples: readonly Example[];
}

/** A header or a parameter of the path. */
export interface Parameter {
  name: string;
  /** Markdown. */
  description: string;
  required?: boolean;
  example: unknown;
}

/** One answer of all reads or to all events: `304`, `2XX`, `default`. */
export interface Status {
  status: string;
  /** Markdown. */
  description: string;
}

export interface Read extends Content {
  id: string;
  path: string;
  summary: string;
  /** Markdown. */
  description: string;
  scope: string;
}

export interface ReferenceEvent extends Content {
  id: string;
  type: string;
  summary: string;
  /** Markdown. */
  description: string;
}

/** An error response of the reads: a reason with its body. */
export interface ErrorExample {
  status: string;
  code: string;
  when: string;
  body: unknown;
}

export interface Reference {
  title: string;
  summary: string;
  version: string;
  /** Markdown, in chapters of first-level headings. */
  introduction: string;
  reads: readonly Read[];
  readParameters: readonly Parameter[];
  readHeaders: readonly Parameter[];
  readStatuses: readonly Status[];
  events: readonly ReferenceEvent[];
  eventSummary: string;
  eventHeaders: readonly Parameter[];
  eventStatuses: readonly Status[];
  errorSchema: Schema;
  errorExamples: readonly ErrorExample[];
  /** Returns the schema that a reference names, or the schema itself. */
  resolve(schema: Schema): Schema;
}

interface Body {
  'application/json': { schema: Schema; examples: Record<string, Example> };
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
  'x-required-scope': string;
  parameters: unknown[];
  requestBody: { content: Body };
  responses: Record<string, Response>;
}

/** Returns what the reference shows of a document. All reads share parameters and errors, and so do all events. */
export function readDocument(document: ReturnType<typeof openApiDocument>): Reference {
  const resolve = <T>(value: T): T => {
    const { $ref = '' } = value as { $ref?: string };
    if ($ref === '') return value;
    const names = $ref.split('/').slice(1);
    return names.reduce((part: unknown, name) => (part as Record<string, unknown>)[name], document) as T;
  };
  const parameters = (all: unknown[]): Parameter[] => all.map((each) => resolve(each) as Parameter);
  const statuses = (all: Record<string, Response>): Status[] =>
    Object.entries(all).map(([status, response]) => ({ status, description: resolve(response).description }));
  const content = ({ 'application/json': { schema, examples } }: Body): Content => ({
    schema,
    examples: Object.values(examples),
  });
  const gets = Object.entries(document.paths as Record<string, { get: Operation }>);
  const posts = Object.entries(document.webhooks as Record<string, { post: Operation }>);
  const [[, { get }], [, { post }]] = [first(gets), first(posts)];
  return {
    title: document.info.title,
    summary: document.info.summary,
    version: document.info.version,
    introduction: document.info.description,
    reads: gets.map(([path, { get: operation }]) => ({
      id: operation.operationId,
      path,
      summary: operation.summary,
      description: operation.description,
      scope: operation['x-required-scope'],
      ...content(first(Object.values(operation.responses)).content as Body),
    })),
    readParameters: parameters(get.parameters),
    readHeaders: Object.entries(document.components.headers).map(([name, header]) => ({
      name,
      ...header,
    })),
    readStatuses: statuses(get.responses),
    events: posts.map(([type, { post: operation }]) => ({
      id: operation.operationId,
      type,
      summary: operation.summary,
      description: operation.description,
      ...content(operation.requestBody.content),
    })),
    eventSummary: document.tags.at(-1)?.description ?? '',
    eventHeaders: parameters(post.parameters),
    eventStatuses: statuses(post.responses),
    errorSchema: { $ref: '#/components/schemas/ErrorBody' },
    errorExamples: Object.entries(get.responses).flatMap(([status, response]) => listErrors(status, resolve(response))),
    resolve,
  };
}

function listErrors(status: string, { content }: Response): ErrorExample[] {
  if (Number(status) < 400 || content === undefined) return [];
  return Object.values(content['application/json'].examples).map(({ summary, value }) => ({
    status,
    code: (value as { error: string }).error,
    when: summary,
    body: value,
  }));
}

/** @throws Error when there is none: the document always has reads and events. */
function first<T>(all: readonly T[]): T {
  const [one] = all;
  if (one === undefined) throw new Error('The OpenAPI document has no operation.');
  return one;
}
