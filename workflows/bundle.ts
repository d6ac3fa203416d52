import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { z } from 'zod';
import { reject } from '#runtime/settings/types.ts';

/** The file of a prebuilt bundle: the code, and a hash of its sources. */
const BundleFile = z.object({ sources: z.string(), code: z.string() });

const mapMark = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';
const remedy = 'build it again, or unset WORKFLOW_BUNDLE to bundle at the start';
const workflowsFolder = import.meta.dirname;

/** A prebuilt bundle that is missing or of another release. The message says what to do. */
export class InvalidBundleError extends Error {}

/**
 * Hashes what a bundle is built from: every source below `workflows/`, and the version of the SDK.
 * A bundle of other sources would replay running deliveries with code that does not match the
 * activities.
 */
function hashWorkflowSources(): string {
  const hash = createHash('sha256');
  const sdk = createRequire(import.meta.url)('@temporalio/workflow/package.json') as { version: string };
  hash.update(sdk.version);
  for (const file of listSources()) hash.update(`\0${file}\0`).update(readFileSync(path.join(workflowsFolder, file)));
  return hash.digest('hex');
}

/**
 * Writes a bundle to a file, which the image of the apps contains. The same sources give the same
 * bytes in every folder: the source map has no paths of the build machine, and no sources.
 */
export function writeWorkflowBundle(file: string, { code }: Pick<WorkflowBundleWithSourceMap, 'code'>): void {
  const bundle = { sources: hashWorkflowSources(), code: withPortableMap(code, process.cwd()) };
  writeFileSync(file, JSON.stringify(bundle));
}

/** @throws InvalidBundleError for a file that is no bundle or was built from other sources. */
export function readWorkflowBundle(file: string): WorkflowBundleWithSourceMap {
  const bundle = parseBundle(file);
  if (bundle.sources !== hashWorkflowSources())
    throw new InvalidBundleError(
      `the workflow bundle ${file} was built from other sources than this release's workflows: ${remedy}`,
    );
  return { code: bundle.code, sourceMap: '' };
}

/** The setting WORKFLOW_BUNDLE: a prebuilt bundle, or null to bundle at the start. */
export const workflowBundleSetting = z
  .string()
  .optional()
  .transform((file, context) => {
    try {
      return file === undefined ? null : readWorkflowBundle(file);
    } catch (error) {
      if (!(error instanceof InvalidBundleError)) throw error;
      return reject(context, error.message);
    }
  })
  .meta({
    description: 'File of the prebuilt workflow code. Without it the process bundles at its start.',
    shown: 'the image’s',
  });

function parseBundle(file: string): z.output<typeof BundleFile> {
  try {
    return BundleFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? 'it is no bundle';
    throw new InvalidBundleError(`the workflow bundle ${file} cannot be read (${why}): ${remedy}`);
  }
}

/** Lists the sources in the same order on every machine. */
function listSources(): string[] {
  return readdirSync(workflowsFolder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.split(path.sep).join('/'))
    .sort();
}

function withPortableMap(code: string, root: string): string {
  const at = code.lastIndexOf(mapMark);
  if (at < 0) throw new Error('the bundler wrote no source map; the SDK expects one');
  const map = JSON.parse(Buffer.from(code.slice(at + mapMark.length), 'base64').toString()) as {
    sources: string[];
    sourcesContent?: string[];
  };
  // A module that is left out is named `ignored|<folder>|<name>`.
  const inRepository = (part: string) => (path.isAbsolute(part) ? path.relative(root, part) : part);
  const portable = {
    ...map,
    file: 'workflows.js',
    sources: map.sources.map((source) => source.split('|').map(inRepository).join('|')),
    sourcesContent: undefined,
  };
  return `${code.slice(0, at)}${mapMark}${Buffer.from(JSON.stringify(portable)).toString('base64')}`;
}
