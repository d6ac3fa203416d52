import { execFile } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BundleRefused, readWorkflowBundle } from '#workflows/bundle.ts';
import { cache } from './compiled-code.ts';
import { ServerUnavailableError } from './servers/process.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Where `prepareWorkflowBundle` puts it; the value of `WORKFLOW_BUNDLE`. */
export const workflowBundle = path.join(cache, 'workflows.bundle.json');

/**
 * Makes sure that `workflowBundle` holds today's workflows, for workers that would otherwise each
 * bundle the same sources when they start (3 s of processor time). What is there and current stays;
 * a new one replaces it whole, so two at once do no harm.
 *
 * @throws ServerUnavailableError when the bundler fails.
 */
export async function prepareWorkflowBundle(): Promise<void> {
  if (isCurrent()) return;
  mkdirSync(cache, { recursive: true });
  const draft = `${workflowBundle}.${process.pid}`;
  // The bundler names modules by the current folder. It stays out of this process: it is 80
  // packages that nothing else here needs.
  try {
    await promisify(execFile)(process.execPath, ['apps/worker/write-bundle.ts', draft], { cwd: root });
  } catch (cause) {
    const why = (cause as { stderr?: string }).stderr?.trim().split('\n').at(-1) || (cause as Error).message;
    throw new ServerUnavailableError(`The workflows could not be bundled (${why}): run npm ci and start again.`, {
      cause,
    });
  }
  renameSync(draft, workflowBundle);
}

function isCurrent(): boolean {
  try {
    readWorkflowBundle(workflowBundle);
    return true;
  } catch (error) {
    if (error instanceof BundleRefused) return false;
    throw error;
  }
}
