import { renameSync } from 'node:fs';
import path from 'node:path';
import { StartupError } from '#runtime/errors.ts';
import { readWorkflowBundle } from '#workflows/bundle.ts';
import { cache, root } from './compiled-code.ts';
import { type Report, runProgram } from './servers/process.ts';
import { programEnvironment } from './servers/program-environment.ts';
import { provideOnce } from './state-lock.mjs';

/** The bundle that `prepareWorkflowBundle` writes; the value of `WORKFLOW_BUNDLE`. */
export const workflowBundle = path.join(cache, 'workflows.bundle.json');

/**
 * Ensures that `workflowBundle` contains the current workflows. Without it, each worker bundles
 * them when it starts (3 s of processor time).
 *
 * @throws StartupError when the bundler fails.
 */
export async function prepareWorkflowBundle(report: Report): Promise<void> {
  await provideOnce(`${workflowBundle}.lock`, {
    isThere: isCurrent,
    async provide() {
      report('bundling the workflows (some seconds, when they have changed)');
      const draft = `${workflowBundle}.draft`; // a worker may read the bundle meanwhile
      // The bundler names modules relative to the current folder, and loads 80 packages that nothing
      // else here needs.
      const args = ['apps/worker/write-bundle.ts', draft];
      const launch = { command: process.execPath, args, cwd: root, env: programEnvironment() };
      const complaint = await runProgram(launch, path.join(cache, 'workflows.log'));
      if (complaint !== null)
        throw new StartupError(`The workflows could not be bundled (${complaint}): run npm ci and start again.`);
      renameSync(draft, workflowBundle);
      return true;
    },
  });
}

function isCurrent(): boolean {
  try {
    readWorkflowBundle(workflowBundle);
    return true;
  } catch {
    return false; // the bundler says what is wrong with the sources
  }
}
