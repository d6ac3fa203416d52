/** What each generated file is made of, and the lines that say so in it. */
import { createHash } from 'node:crypto';
import { type ApiModel, readText } from './document.ts';

/** What a language's files are made of, beside the document. */
export interface Inputs {
  /** Sources and locks of the generator, relative to `apps/clients`. */
  files: readonly string[];
  /** Version of the client's package. */
  version: string;
}

/**
 * Returns the lines that head a generated file: what wrote it, and two SHA-256. `npm test` compares
 * these without running a generator.
 */
export function listHeaderLines(model: ApiModel, { files, version }: Inputs): string[] {
  const sha256 = (...texts: string[]) => createHash('sha256').update(JSON.stringify(texts)).digest('hex');
  return [
    'Generated from apps/api/openapi/openapi.json by `npm run tool -- clients`. Do not edit.',
    `SHA-256 of what it contains of the document: ${sha256(JSON.stringify(model))}`,
    `SHA-256 of its generator: ${sha256(version, ...files.map(readText))}`,
  ];
}

/**
 * Returns the version of a client's package.
 *
 * @throws Error unless it begins with MAJOR.MINOR of the document, since clients speak one API.
 */
export function readVersion(file: string, pattern: RegExp, { info }: ApiModel): string {
  const [, version] = pattern.exec(readText(file)) ?? [];
  const [major, minor] = info.version.split('.');
  if (!version?.startsWith(`${major}.${minor}.`))
    throw new Error(`apps/clients/${file} has version ${version}, and the OpenAPI document ${info.version}`);
  return version;
}

export const typescriptFile = 'typescript/src/generated.ts';

export const getTypeScriptInputs = (model: ApiModel): Inputs => ({
  files: ['generate/document.ts', 'generate/typescript.ts', 'generate/packages/package-lock.json'],
  version: readVersion('typescript/package.json', /"version": "(.+)"/, model),
});

/** The reads, and the types of their bodies. */
export const pythonFiles = ['python/org_api/_generated.py', 'python/org_api/models.py'] as const;

export const getPythonInputs = (model: ApiModel): Inputs => ({
  files: ['generate/document.ts', 'generate/python.ts', 'generate/packages/requirements.txt'],
  version: readVersion('python/pyproject.toml', /^version = "(.+)"/m, model),
});
