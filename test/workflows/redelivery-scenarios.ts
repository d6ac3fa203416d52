import { insertExhausted } from '#test/exhausted-deliveries.ts';
import { redeliveryWorkflowId } from '#workflows/redeliver/types.ts';
import { becomesTrue } from '../../apps/dev/servers/process.ts';
import type { Scenario, Stage } from './stage.ts';

/**
 * Requests a redelivery of all `count` failed deliveries, and waits until the worker has started
 * it.
 */
async function redeliver(stage: Stage, count: number): Promise<{ id: string; workflowId: string }> {
  const { pool, organizationId, webhookId } = stage;
  await insertExhausted(pool, { organizationId, webhookId, count });
  const { rows } = await pool.query<{ id: string }>(
    `insert into redelivery (organization_id, webhook_id, failed_since) values ($1, $2, now() - interval '1 day')
      returning id`,
    [organizationId, webhookId],
  );
  const id = rows[0]?.id ?? '';
  const hasBegun = async () =>
    (await pool.query(`select from redelivery where id = $1 and state <> 'requested'`, [id])).rowCount === 1;
  if (!(await becomesTrue(hasBegun, 30_000, 20))) throw new Error('the redelivery was not begun');
  return { id, workflowId: redeliveryWorkflowId(id) };
}

/** Every way in which a redelivery's workflow ends. */
export const redeliveryScenarios: readonly Scenario[] = [
  { kind: 'redelivery-done', run: (stage) => redeliver(stage, 45) },
  {
    kind: 'redelivery-cancelled',
    async run(stage) {
      const { id, workflowId } = await redeliver(stage, 100);
      await stage.pool.query('update redelivery set cancel_requested_at = now() where id = $1', [id]);
      await stage.client.workflow.getHandle(workflowId).signal('cancel');
      return { workflowId };
    },
  },
  {
    kind: 'redelivery-ended',
    async run(stage) {
      const { workflowId } = await redeliver(stage, 100);
      await stage.pool.query(`update webhook set state = 'parked', parked_reason = 'paused' where id = $1`, [
        stage.webhookId,
      ]);
      return { workflowId };
    },
  },
];
