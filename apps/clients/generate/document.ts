/** The parts of the OpenAPI document that the clients are generated from. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Everything that the generators read of the document: a change of anything else changes no client. */
export interface ApiModel {
  openapi: string;
  info: { title: string; version: string };
  schemas: Readonly<Record<string, Schema>>;
  reads: readonly Read[];
  /** URL of each region's server, by the region in the prefix of its keys. */
  servers: Readonly<Record<string, string>>;
  errorCodes: readonly string[];
  /** Names of the schemas of webhook events. */
  events: readonly string[];
}

/** A schema of JSON Schema 2020-12, of which the generators look at these keywords. */
export interface Schema {
  type?: string | readonly string[];
  enum?: readonly string[];
  description?: string;
  [keyword: string]: unknown;
}

/** A read: `path` contains `{orgId}`, `response` is the schema of its 200. */
export interface Read {
  operationId: string;
  path: string;
  response: string;
  summary: string;
  description: string;
}

interface Content {
  content: { 'application/json': { schema: { $ref: string } } };
}

interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string; description: string }[];
  paths: Record<string, { get: Omit<Read, 'path' | 'response'> & { responses: { 200: Content } } }>;
  webhooks: Record<
    string,
    { post: { requestBody: { content: { 'application/json': { schema: Schema & { title: string } } } } } }
  >;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<
      string,
      { content?: { 'application/json': { examples?: Record<string, { value: { error: string } }> } } }
    >;
  };
}

const clients = path.join(import.meta.dirname, '..');
/** Reads a file of `apps/clients`. */
export const readText = (file: string): string => readFileSync(path.join(clients, file), 'utf8');
const getSchemaName = ({ content }: Content) => content['application/json'].schema.$ref.split('/').at(-1) ?? '';

/** Reads the committed document (`apps/api/openapi/openapi.json`). */
export function readModel(): ApiModel {
  const document = JSON.parse(readText('../api/openapi/openapi.json')) as OpenApiDocument;
  const { openapi, info, paths, webhooks, components, servers } = document;
  const examples = Object.values(components.responses).flatMap(({ content }) =>
    Object.values(content?.['application/json'].examples ?? {}),
  );
  const events = Object.values(webhooks).map(({ post }) => post.requestBody.content['application/json'].schema);
  return {
    openapi,
    info: { title: info.title, version: info.version },
    schemas: { ...components.schemas, ...Object.fromEntries(events.map((schema) => [schema.title, schema])) },
    reads: Object.entries(paths).map(([path, { get }]) => ({
      operationId: get.operationId,
      path,
      response: getSchemaName(get.responses[200]),
      summary: get.summary,
      description: get.description,
    })),
    servers: Object.fromEntries(servers.map(({ url, description }) => [findRegion(description), url])),
    errorCodes: [...new Set(examples.map(({ value }) => value.error))],
    events: events.map(({ title }) => title),
  };
}

/** @throws Error for a server whose description does not name the prefix of its keys. */
function findRegion(description: string): string {
  const [, region] = /aln_(\w+)_/.exec(description) ?? [];
  if (region === undefined) throw new Error(`the server "${description}" names no prefix of keys`);
  return region;
}
