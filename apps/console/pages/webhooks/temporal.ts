import { notice } from '../../components/notice.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { awaySentences, WorkflowsAway } from '../../workflows.ts';

/** What works and what waits in a console that knows no Temporal; nothing where it does. */
export function temporalNotice({ console }: MemberVisit): Html {
  if (console.workflows.isConfigured) return nothing;
  return notice(
    'info',
    html`Sending is not connected here; tell whoever runs this service. Making, changing, pausing and deleting webhooks works, and nothing that happens is lost. Test events, checks of
    signatures and retrying at once have to wait until it is.`,
  );
}

/**
 * Before something that only workers do, so that no line says it was done. @throws WorkflowsAway
 * when this console knows no Temporal.
 */
export function requireTemporal({ console }: MemberVisit): void {
  if (!console.workflows.isConfigured) throw new WorkflowsAway(awaySentences.notConfigured);
}
