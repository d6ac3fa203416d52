import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { workflowBundle } from '../../apps/dev/workflow-bundle.ts';
import type { Addresses } from './region-servers.ts';

const sealingKey = `1:${Buffer.from('a sealing key of the chaos, 32 b').toString('base64')}`;

/** The keys that seal signing secrets in a run. */
export const sealingKeys = webhookSecretKeys.parse(sealingKey);

/** Returns the settings of a worker of a run. */
export function workerEnvironment(servers: Addresses, settings: Record<string, string>): Record<string, string> {
  return {
    REGION: 'us',
    WORKER_DATABASE_URL: servers.urls.worker,
    TEMPORAL_ADDRESS: servers.temporalAddress,
    TEMPORAL_NAMESPACE: servers.temporalNamespace,
    WEBHOOK_SECRET_KEYS: sealingKey,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    WORKFLOW_BUNDLE: workflowBundle,
    READY_AFTER: '0s',
    ...settings,
  };
}

/** Another key with another id: a worker with it cannot open the signing secrets of a run. */
export const otherSealingKey = `2:${Buffer.from('another sealing key of the chaos').toString('base64')}`;

/** Sets a Node process's clock 10 minutes ahead. */
export const shiftedClock = { NODE_OPTIONS: `--import=${new URL('../chaos/shifted-clock.mjs', import.meta.url).href}` };
