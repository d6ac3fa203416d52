import type pg from 'pg';
import {
  dropOldActivitySql,
  endDueGrantsSql,
  keepPartitionsSql,
  purgeDeliveriesSql,
  purgeExpiredSignInsSql,
} from '#domain/db/statements/maintenance.ts';
import {
  cancelDeliveriesSql,
  purgeExpiredSecretsSql,
  restartDeliveriesSql,
  suspendFailingWebhooksSql,
} from '#domain/db/statements/park-webhooks.ts';
import { deliveriesPerMove, purgeBatchSize, suspendTriedWithinSeconds } from '#domain/webhooks/limits.ts';
import type { MaintenanceOptions } from './maintenance.ts';

const hourMs = 3_600_000;
/** Ten seconds are nothing beside the days that a webhook has failed by then. */
const suspendEveryRounds = 10;

/**
 * What maintenance does, as logs and metrics call it. In this order: what somebody waits for comes
 * first.
 */
export const maintenanceSteps = [
  'end_grants',
  'suspend_webhooks',
  'restart_deliveries',
  'cancel_deliveries',
  'purge_secrets',
  'keep_partitions',
  'drop_activity',
  'purge_sign_ins',
  'purge_deliveries',
] as const;
export type MaintenanceStep = (typeof maintenanceSteps)[number];

export interface Step {
  name: MaintenanceStep;
  /** How long it rests once all is done; 0: done in each round. */
  everyMs: number;
  /**
   * Each is one statement at a time, bounded, and safe to repeat. Not all done: it goes on in the
   * next round.
   */
  run: (client: pg.Client) => Promise<{ isAllDone: boolean }>;
}

interface MovedRow {
  deliveries: number;
}

const allDone = { isAllDone: true };

/**
 * Each second grants that are due end, deliveries of resumed webhooks are started again and those
 * of deleted ones cancelled, and secrets whose overlap is over are erased; each ten seconds
 * webhooks that only fail are suspended; each hour the log's partitions are kept ahead, and what is
 * older than its retention goes: the log, what is over of signing in, and settled deliveries.
 */
export function stepsOfMaintenance(options: MaintenanceOptions & { everyMs: number }): Step[] {
  const { activityRetentionDays, deliveryRetentionDays, suspendAfterSeconds, everyMs } = options;
  const { onEnded = () => {}, onSuspended = () => {}, onMoved = () => {}, onPurged = () => {} } = options;

  const steps: Record<MaintenanceStep, Omit<Step, 'name'>> = {
    end_grants: {
      everyMs: 0,
      async run(client) {
        const ended = await client.query(endDueGrantsSql);
        onEnded(ended.rowCount ?? 0);
        return allDone;
      },
    },
    suspend_webhooks: {
      everyMs: suspendEveryRounds * everyMs,
      async run(client) {
        const values = [suspendAfterSeconds, suspendTriedWithinSeconds];
        const suspended = await client.query(suspendFailingWebhooksSql, values);
        onSuspended(suspended.rowCount ?? 0);
        return allDone;
      },
    },
    restart_deliveries: {
      everyMs: 0,
      async run(client) {
        const { rows } = await client.query<MovedRow>(restartDeliveriesSql, [deliveriesPerMove]);
        for (const { deliveries } of rows) onMoved('restarted', deliveries);
        return allDone;
      },
    },
    cancel_deliveries: {
      everyMs: 0,
      async run(client) {
        const { rows } = await client.query<MovedRow>(cancelDeliveriesSql, [deliveriesPerMove, null]);
        for (const { deliveries } of rows) onMoved('cancelled', deliveries);
        return allDone;
      },
    },
    purge_secrets: {
      everyMs: 0,
      async run(client) {
        await client.query(purgeExpiredSecretsSql);
        return allDone;
      },
    },
    keep_partitions: {
      everyMs: hourMs,
      async run(client) {
        await client.query(keepPartitionsSql);
        return allDone;
      },
    },
    drop_activity: {
      everyMs: hourMs,
      async run(client) {
        await client.query(dropOldActivitySql, [activityRetentionDays]);
        return allDone;
      },
    },
    purge_sign_ins: {
      everyMs: hourMs,
      async run(client) {
        await client.query(purgeExpiredSignInsSql);
        return allDone;
      },
    },
    purge_deliveries: {
      everyMs: hourMs,
      async run(client) {
        const values = [deliveryRetentionDays, purgeBatchSize];
        const { rows } = await client.query<{ deliveries: number; events: number }>(purgeDeliveriesSql, values);
        const { deliveries = 0, events = 0 } = rows[0] ?? {};
        onPurged({ deliveries, events });
        return { isAllDone: deliveries < purgeBatchSize && events < purgeBatchSize };
      },
    },
  };
  return maintenanceSteps.map((name) => ({ name, ...steps[name] }));
}
