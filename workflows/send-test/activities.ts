import { ApplicationFailure } from '@temporalio/common';
import type { Pool } from 'pg';
import { type TestTarget, testTargetSql } from '#domain/db/queries/test-target.ts';
import { makeTestEvent } from '#domain/webhooks/test-event.ts';
import type { ActivityDependencies } from '../deliver-event/activities.ts';
import type { SendTestInput, TestActivities, TestResult } from './types.ts';

/** Makes the activity of test events, over the same connections as those of deliveries. */
export function createTestActivities(
  deps: Pick<ActivityDependencies, 'post' | 'sign' | 'onFault'> & { pool: Pool },
): TestActivities {
  const { pool, post, sign, onFault = () => {} } = deps;

  async function send({ organizationId, webhookId, eventType }: SendTestInput): Promise<TestResult | null> {
    const { rows } = await pool.query<TestTarget>(testTargetSql, [organizationId, webhookId]);
    const target = rows[0];
    if (target === undefined) return null;
    const { id: eventId, body: text } = makeTestEvent(eventType, organizationId, new Date());
    const body = Buffer.from(text);
    const sealed = target.secrets.map((secret) => Buffer.from(secret, 'base64'));
    const headers = { ...sign({ organizationId, webhookId, eventId }, sealed, body), 'webhook-attempt': '1' };
    const { kind, status, cause, explanation, timingsMs } = await post({ url: target.url, headers, body });
    return { eventId, delivered: kind === 'delivered', status, cause, explanation, durationMs: timingsMs.total };
  }

  return {
    postTest: (input) =>
      send(input).catch((cause: unknown) => {
        onFault(cause, { ...input, eventId: '' });
        // What failed stays in our log: an error's text could carry a value into the history.
        throw ApplicationFailure.nonRetryable('the test event could not be sent', 'fault');
      }),
  };
}
