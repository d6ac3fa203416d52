import type { WorkflowClient } from '#workflows/client.ts';
import type { Context } from './command.ts';

/**
 * Notifies a workflow of a committed change. A failure is only reported, with `fallback`, which
 * says how the workflow finds the change: the command has succeeded.
 *
 * @returns whether the workflow was notified; false when it had ended, null without Temporal.
 */
export async function notifyWorkflow(
  { report }: Context,
  signals: WorkflowClient | null,
  fallback: string,
  notify: (signals: WorkflowClient) => Promise<boolean>,
): Promise<boolean | null> {
  if (signals === null) return null;
  try {
    return await notify(signals);
  } catch {
    report(`Temporal could not be notified: ${fallback}.`);
    return null;
  }
}
