import type { WorkflowClient } from '#workflows/client.ts';
import type { Context } from './command.ts';

/**
 * Tells a workflow what is in the database already, over `signals`; null: there are none, which has
 * been reported. What fails here is reported and nothing more, with what is `left` to itself: the
 * change stands, so the command has done what it was asked for.
 *
 * @returns whether the workflow was notified; false also when it had ended. Null when Temporal did
 * not take it.
 */
export async function tellWorkflow(
  { report }: Context,
  signals: WorkflowClient | null,
  left: string,
  tell: (signals: WorkflowClient) => Promise<boolean>,
): Promise<boolean | null> {
  if (signals === null) return null;
  try {
    return await tell(signals);
  } catch {
    report(`Temporal does not take the news of it: ${left}.`);
    return null;
  }
}
