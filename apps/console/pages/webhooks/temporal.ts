import { type Html, nothing } from '#runtime/pages/html.ts';
import { notice } from '../../components/notice.ts';
import { unavailableSentences, WorkflowsUnavailableError } from '../../web/temporal.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Explains what is unavailable in a console without Temporal. Returns nothing where it is set. */
export function temporalNotice({ console }: MemberVisit): Html {
  if (console.workflows.isConfigured) return nothing;
  return notice(
    'info',
    'Sending is not available on this installation. Contact support. You can manage webhooks, and ' +
      'no events are lost. Test events and signature checks are unavailable.',
  );
}

/**
 * Requires Temporal before an action that only a worker can do, so that the audit log never
 * records the action when it is impossible.
 *
 * @throws WorkflowsUnavailableError when this console has no Temporal.
 */
export function requireTemporal({ console }: MemberVisit): void {
  if (!console.workflows.isConfigured) throw new WorkflowsUnavailableError(unavailableSentences.notConfigured);
}
