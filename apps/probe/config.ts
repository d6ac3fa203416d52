import { z } from 'zod';
import { isSecret } from '#domain/webhooks/secret.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { temporalAccess, temporalServerOf } from '#runtime/settings/temporal.ts';
import { httpUrl, port, region, temporalAddress } from '#runtime/settings/types.ts';

const Settings = z.object({
  REGION: region.describe('us or ca'),
  PROBE_API_URL: httpUrl.describe('where the region’s API answers'),
  PROBE_KEY: z.string().min(1).describe('the key that orgctl probe create printed'),
  PROBE_ORGANIZATION_ID: z.uuid({ error: 'must be a UUID' }),
  PROBE_WEBHOOK_ID: z.uuid({ error: 'must be a UUID' }),
  PROBE_WEBHOOK_SECRET: z.string().refine(isSecret, 'must be whsec_ and 32 base64 characters'),
  PROBE_HOST: z.string().default('0.0.0.0'),
  PROBE_PORT: port.default(8090),
  TEMPORAL_ADDRESS: temporalAddress.describe('host:port of Temporal'),
  TEMPORAL_NAMESPACE: z.string().min(1).describe('the namespace of this region'),
  ...temporalAccess,
});

/** The probe's settings; secrets may come from files, as everywhere. @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    region: s.REGION,
    api: s.PROBE_API_URL,
    key: s.PROBE_KEY,
    organizationId: s.PROBE_ORGANIZATION_ID,
    webhookId: s.PROBE_WEBHOOK_ID,
    webhookSecret: s.PROBE_WEBHOOK_SECRET,
    host: s.PROBE_HOST,
    port: s.PROBE_PORT,
    temporal: temporalServerOf(s, s.TEMPORAL_NAMESPACE),
  });
}

export type ProbeConfig = ReturnType<typeof readConfig>;
