import { fingerprint } from '#domain/keys/key.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import type { AppProcess } from '#test/app-processes.ts';
import { stepsOfMaintenance } from '../../../apps/worker/maintenance-steps.ts';
import type { SoakRegion } from './region.ts';
import { type AppName, retention, type SoakStack } from './stack.ts';

/** What the hours so far have done. */
export interface HourCounts {
  purgedDeliveries: number;
  rotations: number;
  restarts: number;
}

export const restartedApps = ['worker 2', 'api 2'] as const satisfies readonly AppName[];

const hourMs = 3_600_000;
const overlapSeconds = 60;
const keyDays = 30;

/**
 * Returns the work of one hour of the day: the hourly steps of maintenance, the rotation of a key
 * and of a signing secret, and the restart of one process, with SIGTERM and SIGKILL in turn.
 */
export function createHours(stack: SoakStack, region: SoakRegion, apps: Record<AppName, AppProcess>) {
  const counts: HourCounts = { purgedDeliveries: 0, rotations: 0, restarts: 0 };
  const steps = stepsOfMaintenance({
    auditLogRetentionDays: retention.auditLogDays,
    deliveryRetentionDays: retention.deliveryDays,
    suspendAfterSeconds: 86_400,
    everyMs: 1_000,
    onPurged({ deliveries }) {
      counts.purgedDeliveries += deliveries;
    },
  }).filter(({ everyMs }) => everyMs === hourMs);
  const db = stack.database;

  async function maintain(): Promise<void> {
    for (const step of steps) while (!(await step.run(stack.worker)).isAllDone);
  }

  async function rotate(hour: number): Promise<void> {
    const used = region.keys[hour] as SoakRegion['keys'][number];
    const { rows } = await stack.owner.query<{ id: string; creatorId: string }>(
      'select id, creator_id as "creatorId" from api_key where organization_id = $1 and fingerprint = $2',
      [used.organizationId, fingerprint(used.key, stack.secrets.peppers[0])],
    );
    const { id = '', creatorId = '' } = rows[0] ?? {};
    const expiresAt = new Date(Date.now() + keyDays * 24 * hourMs);
    const request = {
      organizationId: used.organizationId,
      keyId: id,
      by: { personId: creatorId },
      overlapSeconds,
      expiresAt,
    };
    used.key = (await rotateKey(db, request, stack.secrets)).key;

    const { id: organizationId, webhookId } = region.organizations[
      hour % region.organizations.length
    ] as SoakRegion['organizations'][number];
    await rotateSecret(db, { organizationId, webhookId, by: 'orgctl', overlapSeconds }, stack.sealingKeys);
    counts.rotations += 2;
  }

  async function restart(hour: number): Promise<void> {
    const app = restartedApps[hour % restartedApps.length] as AppName;
    await apps[app].kill(Math.floor(hour / 2) % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
    counts.restarts += 1;
  }

  return {
    counts,
    async runHour(hour: number): Promise<void> {
      await maintain();
      await rotate(hour);
      await restart(hour);
    },
  };
}
