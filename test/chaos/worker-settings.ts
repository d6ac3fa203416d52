import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { workflowBundle } from '../../apps/dev/prebuilt.ts';
import type { Addresses } from './servers.ts';

const sealingKey = `1:${Buffer.from('a sealing key of the chaos, 32 b').toString('base64')}`;

/** What seals signing secrets in a run. */
export const sealingKeys = webhookSecretKeys.parse(sealingKey);

/** What a worker of a run reads from its environment. */
export function workerEnvironment(servers: Addresses, settings: Record<string, string>): Record<string, string> {
  return {
    REGION: 'us',
    WORKER_DATABASE_URL: servers.urls.worker,
    TEMPORAL_ADDRESS: servers.temporalAddress,
    TEMPORAL_NAMESPACE: servers.temporalNamespace,
    WEBHOOK_SECRET_KEYS: sealingKey,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    WORKFLOW_BUNDLE: workflowBundle,
    ...settings,
  };
}

/** Another key under another id: a worker with it opens no signing secret of a run. */
export const otherSealingKey = `2:${Buffer.from('another sealing key of the chaos').toString('base64')}`;

/** Makes a Node process's clock 10 minutes fast. */
export const shiftedClock = { NODE_OPTIONS: `--import=${new URL('shifted-clock.mjs', import.meta.url).href}` };
