import { mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { InvalidBundleError, readWorkflowBundle } from '#workflows/bundle.ts';
import { cache, root } from './compiled-code.ts';
import { runProgram, ServerUnavailableError } from './servers/process.ts';
import { programEnvironment } from './servers/program-environment.ts';

/** The bundle that `prepareWorkflowBundle` writes; the value of `WORKFLOW_BUNDLE`. */
export const workflowBundle = path.join(cache, 'workflows.bundle.json');

/**
 * Ensures that `workflowBundle` contains the current workflows. Without it, each worker bundles
 * them when it starts (3 s of processor time). A new one replaces the file in one step, so that two
 * processes may write at once.
 *
 * @throws ServerUnavailableError when the bundler fails.
 */
export async function prepareWorkflowBundle(): Promise<void> {
  if (isCurrent()) return;
  mkdirSync(cache, { recursive: true });
  const draft = `${workflowBundle}.${process.pid}`;
  // The bundler names modules relative to the current folder, and loads 80 packages that nothing
  // else here needs.
  const complaint = await runProgram({
    command: process.execPath,
    args: ['apps/worker/write-bundle.ts', draft],
    cwd: root,
    env: programEnvironment(),
    logFile: path.join(cache, 'workflows.log'),
  });
  if (complaint !== null)
    throw new ServerUnavailableError(`The workflows could not be bundled (${complaint}): run npm ci and start again.`);
  renameSync(draft, workflowBundle);
}

function isCurrent(): boolean {
  try {
    readWorkflowBundle(workflowBundle);
    return true;
  } catch (error) {
    if (error instanceof InvalidBundleError) return false;
    throw error;
  }
}
