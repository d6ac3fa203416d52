import { hostname } from 'node:os';
import { z } from 'zod';
import { readSettings } from '#runtime/settings/read.ts';
import { logLevel, port, region } from '#runtime/settings/types.ts';

/**
 * Objects of one kind that are worked on at once: a namespace has tens of them, and each waits for
 * PostgreSQL and Kubernetes most of the time.
 */
const concurrency = 4;

export const Settings = z.object({
  REGION: region,
  OPERATOR_NAMESPACE: z
    .string()
    .regex(/^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/, 'must be the name of a Kubernetes namespace')
    .describe('Kubernetes namespace whose objects the operator works on.'),
  OPERATOR_IDENTITY: z
    .string()
    .optional()
    .meta({ description: 'Name of this replica in the Lease, for example its pod’s.', shown: 'the host’s name' }),
  OPERATOR_WEBHOOKS: z.enum(['true', 'false'], { error: 'must be true or false' }).optional().meta({
    description: 'Whether WebhookSubscriptions are carried out. It takes access to all Secrets.',
    shown: 'false',
  }),
  KUBECONFIG: z
    .string()
    .optional()
    .meta({ description: 'File that says how the API server is reached.', shown: 'the pod’s service account' }),
  HOST: z.string().default('::').describe('Address to listen on. `::` is every address, of IPv4 too.'),
  METRICS_PORT: port.default(9090).describe('Port of `/metrics`, `/livez` and `/readyz`.'),
  LOG_LEVEL: logLevel,
});

/** @throws InvalidSettingsError with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    region: s.REGION,
    namespace: s.OPERATOR_NAMESPACE,
    identity: s.OPERATOR_IDENTITY ?? hostname(),
    concurrency,
    /** Whether the kinds of webhooks are carried out. */
    webhooks: s.OPERATOR_WEBHOOKS === 'true',
    /** Null: that of the pod's service account. */
    kubeconfigFile: s.KUBECONFIG ?? null,
    host: s.HOST,
    metricsPort: s.METRICS_PORT,
    logLevel: s.LOG_LEVEL,
  });
}

export type OperatorConfig = ReturnType<typeof readConfig>;
