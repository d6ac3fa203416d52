import { z } from 'zod';
import { isSecret } from '#domain/webhooks/secret.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { temporalAccess, temporalServerOf } from '#runtime/settings/temporal.ts';
import { httpUrl, port, region, temporalAddress } from '#runtime/settings/types.ts';

export const Settings = z.object({
  REGION: region,
  PROBE_API_URL: httpUrl.describe('Base URL of the read API that `helm test` reads.'),
  PROBE_KEY: z.string().min(1).describe('The key that `orgctl probe create` printed.'),
  PROBE_ORGANIZATION_ID: z.uuid({ error: 'must be a UUID' }).describe('The operator’s probe organization.'),
  PROBE_WEBHOOK_ID: z
    .uuid({ error: 'must be a UUID' })
    .describe('The operator’s probe webhook (`orgctl probe create`, `helm test`).'),
  PROBE_WEBHOOK_SECRET: z
    .string()
    .refine(isSecret, 'must be whsec_ and 32 base64 characters')
    .describe('Signing secret of the probe webhook.'),
  PROBE_HOST: z.string().default('::').describe('Address where the probe receives its event.'),
  PROBE_PORT: port.default(8090).describe('Port where the probe receives its event.'),
  TEMPORAL_ADDRESS: temporalAddress,
  TEMPORAL_NAMESPACE: z.string().min(1).describe('Temporal namespace of this region.'),
  ...temporalAccess,
});

/**
 * Reads the probe's settings; secrets may come from files, as in every app.
 *
 * @throws SettingsRefused with every problem at once.
 */
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
