/** Writes the generated file of the TypeScript client. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { npmPackages } from '../../../test/support/npm-packages.ts';
import { getTypeScriptInputs, listHeaderLines } from './digests.ts';
import type { ApiModel, Read, Schema } from './document.ts';

/** Returns the text of the file: types by openapi-typescript, and the reads as methods. */
export async function generateTypeScript(model: ApiModel): Promise<string> {
  const inputs = getTypeScriptInputs(model);
  const types = await generateTypes(model);
  const quote = (value: unknown) => JSON.stringify(value);
  return `${listHeaderLines(model, inputs)
    .map((line) => `// ${line}\n`)
    .join('')}import type { ApiResponse, CallOptions } from './response.ts';

${types}
/** The version of this package. */
export const clientVersion = ${quote(inputs.version)};

/** The server of each region, by the prefix of its keys (\`aln_us_\`). */
export const servers = ${JSON.stringify(model.servers, null, 2)} as const;

/** The codes that the server sends in \`error\`. */
export type ErrorCode =
  | ${model.errorCodes.map(quote).join('\n  | ')};

/** The body of a webhook's delivery. */
export type WebhookEvent =
  | ${model.events.join('\n  | ')};

type Unchanged = CallOptions & { ifNoneMatch: string };

/** The reads, by the names of their operations. */
export abstract class Reads {
  protected abstract read<T>(path: string, organizationId: string, options: CallOptions): Promise<ApiResponse<T>>;
${model.reads.map(writeMethod).join('')}}
`;
}

function writeMethod({ operationId, path, response, summary, description }: Read): string {
  const lines = [
    '/'.concat('**'),
    ` * ${summary}.`,
    ' *',
    ...description.split('\n').map((line) => ` * ${line}`),
    ' */',
  ];
  return `
${lines.map((line) => `  ${line.trimEnd()}`).join('\n')}
  ${operationId}(organizationId: string, options: Unchanged): Promise<ApiResponse<${response} | null>>;
  ${operationId}(organizationId: string, options?: CallOptions): Promise<ApiResponse<${response}>>;
  ${operationId}(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<${response} | null>> {
    return this.read<${response} | null>(${JSON.stringify(path)}, organizationId, options);
  }
`;
}

/** The parts of openapi-typescript and of TypeScript's compiler that are used. */
interface OpenapiTypescript {
  default(source: string, options: object): Promise<unknown[]>;
  astToString(nodes: unknown[]): string;
}
interface Compiler {
  factory: Record<
    | 'createUnionTypeNode'
    | 'createLiteralTypeNode'
    | 'createStringLiteral'
    | 'createParenthesizedType'
    | 'createIntersectionTypeNode'
    | 'createKeywordTypeNode'
    | 'createTypeLiteralNode',
    (value: unknown) => unknown
  >;
  SyntaxKind: { StringKeyword: number };
}

/** Returns the types of the schemas, each exported under its name. */
async function generateTypes({ openapi, info, schemas }: ApiModel): Promise<string> {
  const modules = await npmPackages({ name: 'generate-clients', source: path.join(import.meta.dirname, 'packages') });
  const load = (file: string) => import(pathToFileURL(path.join(modules, file)).href);
  const { default: generate, astToString } = (await load('openapi-typescript/dist/index.mjs')) as OpenapiTypescript;
  const { default: compiler } = (await load('typescript/lib/typescript.js')) as { default: Compiler };
  const { factory, SyntaxKind } = compiler;
  const text = factory.createKeywordTypeNode(SyntaxKind.StringKeyword);
  const anyText = factory.createIntersectionTypeNode([text, factory.createTypeLiteralNode([])]);
  // 'attorney' | 'neutral' | (string & {}): a value that the server learns later is a string, and
  // editors complete the known ones.
  const open = (values: readonly string[]) =>
    factory.createUnionTypeNode([
      ...values.map((value) => factory.createLiteralTypeNode(factory.createStringLiteral(value))),
      factory.createParenthesizedType(anyText),
    ]);
  const source = { openapi, info, paths: {}, components: { schemas } };
  const nodes = await generate(JSON.stringify(source), {
    transform: (schema: Schema) => (schema.type === 'string' && schema.enum ? open(schema.enum) : undefined),
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    silent: true,
  });
  const empty = /export (type (webhooks|operations|\$defs|paths) = .*;|interface (webhooks|paths) \{\s*\})\n/g;
  return astToString(nodes).replace(empty, '').replace('export interface components', 'interface components');
}
