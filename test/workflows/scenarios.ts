import type { WorkflowHandle } from '@temporalio/client';
import { beginRoundSql } from '#test/begin-round.ts';
import { type DeliverEventInput, deliverQueue } from '#workflows/deliver-event/types.ts';
import type { SendTestInput } from '#workflows/send-test/types.ts';
import type { Behavior } from '../chaos/plan.ts';
import { redeliveryScenarios } from './redelivery-scenarios.ts';
import type { Scenario, Stage } from './stage.ts';

/** The waits of every scenario: short ones, one of hours, and the end. */
export const scenarioSchedule = '500ms,500ms,20s,1s';

const fail: Behavior = { kind: 'answer', status: 500 };
const accept: Behavior = { kind: 'answer', status: 200 };
type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
const workflowOf = ({ webhookId }: Stage, eventId: string) => `delivery/${webhookId}/${eventId}`;

/**
 * Completes a delivery in runs of a few events each: two failures and then a 2xx, one attempt per
 * run. Then it runs a second round of the completed delivery, as its workflow can be started
 * manually without the relay. Returns the ids of all runs, from the first.
 */
async function continueTwice(stage: Stage): Promise<{ workflowId: string; runIds: string[] }> {
  const { pool, client, organizationId, webhookId } = stage;
  const eventId = await stage.makeEvent();
  await stage.state('delivered');
  stage.receive((nth) => (nth < 4 ? fail : accept));
  await pool.query(
    `update delivery set state = 'waiting', round = 2, started = true, settled_at = null, next_attempt_at = now()
      where webhook_id = $1`,
    [webhookId],
  );
  const workflowId = `${workflowOf(stage, eventId)}/r2`;
  const input: DeliverEventInput = {
    organizationId,
    webhookId,
    eventId,
    round: 2,
    slow: false,
    type: 'client.started',
    delaysMs: [500, 500, 500],
    begunAtMs: Date.now(),
    eventsPerRun: 5,
  };
  const handle = await client.workflow.start('deliverEvent', { taskQueue: deliverQueue, workflowId, args: [input] });
  await handle.result();
  const runIds = [];
  for (let runId: string | null | undefined = handle.firstExecutionRunId; runId; ) {
    runIds.push(runId);
    const { events }: History = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return { workflowId, runIds };
}

/** Sends a test event, or checks signatures, as `orgctl` requests it. */
async function sendTest({ client, organizationId, webhookId }: Stage, option: Partial<SendTestInput>) {
  const workflowId = `test/${webhookId}/${webhookId}`;
  const input: SendTestInput = { organizationId, webhookId, eventType: 'client.started', ...option };
  await client.workflow.execute('sendTest', { taskQueue: deliverQueue, workflowId, args: [input] });
  return { workflowId };
}

/** Every way in which a workflow ends; each is in `histories/` under its kind. */
export const scenarios: readonly Scenario[] = [
  {
    kind: 'delivered-at-once',
    async run(stage) {
      const eventId = await stage.makeEvent();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'delivered-after-retries',
    async run(stage) {
      stage.receive((nth) => (nth < 3 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'delivered-to-a-failing-webhook',
    async run(stage) {
      await stage.pool.query('update webhook set failing_since = now() where id = $1', [stage.webhookId]);
      const eventId = await stage.makeEvent();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'exhausted',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.state('exhausted');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'retried-now',
    async run(stage) {
      stage.receive((nth) => (nth < 4 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      await stage.client.workflow.getHandle(workflowOf(stage, eventId)).signal('retryNow');
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'retried-when-overdue',
    async run(stage) {
      stage.receive((nth) => (nth < 4 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      const handle = stage.client.workflow.getHandle(workflowOf(stage, eventId));
      await handle.signal('retryNow', Date.now() - 60_000); // of an earlier wait, so it is ignored
      await handle.signal('retryNow', Date.now() + 10_000);
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'cancelled',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      await stage.pool.query(
        `update delivery set state = 'cancelled', next_attempt_at = null, settled_at = now() where webhook_id = $1`,
        [stage.webhookId],
      );
      await stage.client.workflow.getHandle(workflowOf(stage, eventId)).signal('cancel');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'parked',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      await stage.pool.query(`update webhook set state = 'parked', parked_reason = 'failing' where id = $1`, [
        stage.webhookId,
      ]);
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'lost-worker',
    async run(stage) {
      stage.receive((nth) => (nth === 1 ? { kind: 'hang' } : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(1, 1);
      await stage.killWorker();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'database-away',
    async run(stage) {
      stage.receive((nth) => (nth < 2 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(1, 0);
      await stage.killPostgres();
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await stage.restartPostgres();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'postponed-in-a-second-round',
    async run(stage) {
      stage.receive((nth) => (nth === 1 ? { kind: 'answer', status: 500, afterMs: 4_000 } : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(1, 1);
      await stage.pool.query(beginRoundSql, [stage.organizationId, stage.webhookId, eventId, 1]);
      await stage.state('delivered');
      return { eventId, round: 2 };
    },
  },
  {
    kind: 'lost-at-the-last-attempt',
    async run(stage) {
      stage.receive((nth) => (nth < 5 ? fail : nth === 5 ? { kind: 'hang' } : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(5, 1);
      await stage.killWorker();
      await stage.state('delivered');
      return { eventId, round: 1 };
    },
  },
  {
    kind: 'continued-as-new',
    async run(stage) {
      const { workflowId, runIds } = await continueTwice(stage);
      return { workflowId, runId: runIds[1] ?? '' };
    },
  },
  {
    kind: 'delivered-after-continuing',
    async run(stage) {
      const { workflowId, runIds } = await continueTwice(stage);
      return { workflowId, runId: runIds.at(-1) ?? '' };
    },
  },
  { kind: 'test-event', run: (stage) => sendTest(stage, {}) },
  { kind: 'signature-check', run: (stage) => sendTest(stage, { checkSignatures: true }) },
  ...redeliveryScenarios,
];
