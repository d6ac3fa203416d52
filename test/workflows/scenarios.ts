import { setTimeout as wait } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { type DeliverEventInput, deliverQueue, getWorkflowId } from '#workflows/deliver-event/types.ts';
import type { SendTestInput } from '#workflows/send-test/types.ts';
import type { Behavior } from '../chaos/plan.ts';
import type { Scenario, Stage } from './stage.ts';

/** The waits of every scenario, and the end. */
export const scenarioSchedule = '500ms,500ms,2s,1s';

const fail: Behavior = { kind: 'answer', status: 500 };
const accept: Behavior = { kind: 'answer', status: 200 };
type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

const getStageWorkflowId = ({ organizationId, webhookId }: Stage, eventId: string) =>
  getWorkflowId({ organizationId, webhookId, eventId });

/** Returns the execution that a delivery's workflow has now. */
async function getExecution(stage: Stage, eventId: string): Promise<{ workflowId: string; runId: string }> {
  const workflowId = getStageWorkflowId(stage, eventId);
  return { workflowId, runId: (await stage.client.workflow.getHandle(workflowId).describe()).runId };
}

/**
 * Completes a delivery in executions of a few events each: two failures and then a 2xx, one attempt
 * per execution. Returns the ids of all executions, from the first.
 */
async function continueTwice(stage: Stage): Promise<{ workflowId: string; runIds: string[] }> {
  const { pool, client, organizationId, webhookId } = stage;
  const eventId = await stage.makeEvent();
  await stage.state('delivered');
  stage.receive((nth) => (nth < 4 ? fail : accept));
  await pool.query(
    `update delivery set state = 'running', run = 2, settled_at = null, due_at = now() where webhook_id = $1`,
    [webhookId],
  );
  const workflowId = getStageWorkflowId(stage, eventId);
  const input: DeliverEventInput = {
    organizationId,
    webhookId,
    eventId,
    run: 2,
    isDegraded: false,
    type: 'client.started',
    dueAtMs: Date.now(),
    eventsPerExecution: 5,
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
      return { eventId };
    },
  },
  {
    kind: 'delivered-after-retries',
    async run(stage) {
      stage.receive((nth) => (nth < 3 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.state('delivered');
      return { eventId };
    },
  },
  {
    kind: 'delivered-to-a-degraded-webhook',
    async run(stage) {
      await stage.pool.query('update receiver set concurrency = 1 where webhook_id = $1', [stage.webhookId]);
      const eventId = await stage.makeEvent();
      await stage.state('delivered');
      return { eventId };
    },
  },
  {
    kind: 'exhausted',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.state('exhausted');
      return { eventId };
    },
  },
  {
    kind: 'cancelled',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      await stage.pool.query(
        `update delivery set state = 'cancelled', due_at = null, settled_at = now() where webhook_id = $1`,
        [stage.webhookId],
      );
      return { eventId };
    },
  },
  {
    kind: 'suspended',
    async run(stage) {
      stage.receive(() => fail);
      const eventId = await stage.makeEvent();
      await stage.attempts(3, 0);
      await stage.pool.query(`update webhook set state = 'suspended', suspended_reason = 'failures' where id = $1`, [
        stage.webhookId,
      ]);
      return { eventId };
    },
  },
  {
    // Its next run ends this one.
    kind: 'lost-first-attempt',
    async run(stage) {
      stage.receive((nth) => (nth === 1 ? { kind: 'hang' } : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(1, 1);
      const execution = await getExecution(stage, eventId);
      await stage.killWorker();
      await stage.state('delivered');
      return execution;
    },
  },
  {
    kind: 'lost-retry',
    async run(stage) {
      stage.receive((nth) => (nth === 1 ? fail : nth === 2 ? { kind: 'hang' } : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(2, 1);
      const execution = await getExecution(stage, eventId);
      await stage.killWorker();
      await stage.state('delivered');
      return execution;
    },
  },
  {
    kind: 'database-unavailable',
    async run(stage) {
      stage.receive((nth) => (nth < 2 ? fail : accept));
      const eventId = await stage.makeEvent();
      await stage.attempts(1, 0);
      await stage.killPostgres();
      await wait(3_000);
      await stage.restartPostgres();
      await stage.state('delivered');
      return { eventId };
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
];
