import { getClient } from '@temporalio/activity';
import type { Pool } from 'pg';
import { carryOutPage, listUnnotified, recordNotified } from '#domain/webhooks/redelivery-page.ts';
import { retryNow } from '../client.ts';
import { withoutErrorText } from '../deliver-event/activities.ts';
import type { PageInput, RedeliveryActivities, RedeliveryKey, RedeliveryProgress } from './types.ts';

interface RedeliveryDependencies {
  pool: Pool;
  /** After how long without a page a redelivery counts as abandoned and is started again. */
  leaseMs: number;
  /** Called with an internal error; the page is retried. */
  onInternalError?: (cause: unknown, redelivery: RedeliveryKey) => void;
}

/** How many workflows are notified at once. */
const notifiedAtOnce = 10;

/** Creates the activities of redeliveries, over the worker's connections. */
export function createRedeliveryActivities(deps: RedeliveryDependencies): RedeliveryActivities {
  const { pool, leaseMs, onInternalError = () => {} } = deps;

  /**
   * Workflows are notified after the commit, which is then recorded. After a crash in between they
   * are notified again, which has no effect.
   */
  async function redeliverPage(input: PageInput): Promise<RedeliveryProgress> {
    const { organizationId, redeliveryId } = input;
    const { webhookId, unnotified, progress, isUnfinished } = await carryOutPage(pool, input, { leaseMs });
    if (!isUnfinished) return progress;
    const running = await listUnnotified(pool, { organizationId, webhookId, unnotified });
    const client = getClient();
    for (let from = 0; from < running.length; from += notifiedAtOnce) {
      const some = running.slice(from, from + notifiedAtOnce);
      // A delivery without a workflow is overdue by now, and the reconciler starts a new round.
      await Promise.all(
        some.map(({ eventId, round }) => retryNow(client, { organizationId, webhookId, eventId }, round)),
      );
    }
    const notified = await recordNotified(pool, { organizationId, redeliveryId, pages: progress.pages });
    return notified ?? progress;
  }

  return { redeliverPage: withoutErrorText(redeliverPage, onInternalError) };
}
