import type { WorkflowInterceptors } from '@temporalio/workflow';
import { timesFaster } from './speed.ts';

/** Makes every timer of a workflow fire sooner by this factor; the workflow code is unchanged. */
export const interceptors = (): WorkflowInterceptors => ({
  outbound: [
    {
      startTimer: (input, next) =>
        next({ ...input, durationMs: Math.max(1, Math.round(input.durationMs / timesFaster)) }),
    },
  ],
});
