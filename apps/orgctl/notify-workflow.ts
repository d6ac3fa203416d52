import type { WorkflowClient } from '#workflows/client.ts';
import type { Context } from './command.ts';

type Notify = (signals: WorkflowClient) => Promise<boolean>;

/**
 * Notifies a workflow of a committed change. A failure is only reported, with `fallback`, which
 * says how the workflow finds the change: the command has succeeded.
 */
export async function notifyWorkflow(context: Context, fallback: string, notify: Notify): Promise<void> {
  const signals = await context.openSignals(fallback);
  await notifyBy(signals, context, fallback, notify);
  await signals?.close();
}

/**
 * The same by an open client.
 *
 * @returns whether the workflow was notified; false when it had ended, null without Temporal.
 */
export async function notifyBy(
  signals: WorkflowClient | null,
  { report }: Context,
  fallback: string,
  notify: Notify,
): Promise<boolean | null> {
  if (signals === null) return null;
  try {
    return await notify(signals);
  } catch {
    report(`Temporal could not be notified: ${fallback}.`);
    return null;
  }
}
