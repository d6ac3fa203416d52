import { z } from 'zod';
import { isSecret } from '#domain/webhooks/secret.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { findTemporalServer, temporalAccess } from '#runtime/settings/temporal.ts';
import {
  addressBlocks,
  databaseUrl,
  httpUrl,
  port,
  redisUrl,
  region,
  temporalAddress,
} from '#runtime/settings/types.ts';
import type { CheckedLogin } from './postgresql.ts';

const id = z.uuid({ error: 'must be a UUID' });
const login = (app: string) => databaseUrl.optional().describe(`PostgreSQL URL of ${app}.`);

/** The settings of `orgctl doctor`. It checks what they name. */
export const Settings = z.object({
  REGION: region,
  DATABASE_URL: login('the database’s owner'),
  API_DATABASE_URL: login('the login of the API'),
  WORKER_DATABASE_URL: login('the login of the worker'),
  CONSOLE_DATABASE_URL: login('the login of the console'),
  PLATFORM_DATABASE_URL: login('the login of the platform'),
  OPERATOR_DATABASE_URL: login('the login of the Kubernetes operator'),
  REDIS_URL: redisUrl.optional().describe('Redis 7 or newer with `noeviction`.'),
  TEMPORAL_ADDRESS: temporalAddress.optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default').describe('Temporal namespace of this region.'),
  ...temporalAccess,
  TRUSTED_PROXIES: addressBlocks.meta({ description: 'What API and console trust.', shown: 'none' }),
  API_URL: httpUrl.optional().describe('Base URL of the read API that `helm test` reads.'),
  PROBE_KEY: z.string().min(1).optional().describe('The key that `orgctl probe create` printed.'),
  PROBE_ORGANIZATION_ID: id.optional().describe('The operator’s probe organization.'),
  PROBE_WEBHOOK_ID: id.optional().describe('The operator’s probe webhook (`orgctl probe create`, `helm test`).'),
  PROBE_WEBHOOK_SECRET: z
    .string()
    .refine(isSecret, 'must be whsec_ and 32 base64 characters')
    .optional()
    .describe('Signing secret of the probe webhook.'),
  PROBE_PORT: port.default(8090).describe('Port where the probe receives its event.'),
});

/**
 * Reads the settings of a check; secrets may come from files, as in every app.
 *
 * @throws InvalidSettingsError with every problem at once.
 */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  const logins: CheckedLogin[] = [
    ['owner', 'DATABASE_URL'] as const,
    ['api', 'API_DATABASE_URL'] as const,
    ['worker', 'WORKER_DATABASE_URL'] as const,
    ['console', 'CONSOLE_DATABASE_URL'] as const,
    ['platform', 'PLATFORM_DATABASE_URL'] as const,
    ['operator', 'OPERATOR_DATABASE_URL'] as const,
  ].flatMap(([role, setting]) => {
    const server = s[setting];
    return server === undefined ? [] : [{ role, setting, server }];
  });
  return Object.freeze({
    region: s.REGION,
    logins,
    redis: s.REDIS_URL ?? null,
    temporal: findTemporalServer(s, s.TEMPORAL_NAMESPACE),
    trustedProxies: s.TRUSTED_PROXIES,
    hosts: [
      ...logins.map(({ setting, server }) => ({ setting, host: server.host })),
      ...(s.REDIS_URL === undefined ? [] : [s.REDIS_URL, ...s.REDIS_URL.others]).map(({ host }) => ({
        setting: 'REDIS_URL',
        host,
      })),
      ...(s.TEMPORAL_ADDRESS === undefined ? [] : [{ setting: 'TEMPORAL_ADDRESS', host: s.TEMPORAL_ADDRESS.host }]),
      ...(s.API_URL === undefined
        ? []
        : [{ setting: 'API_URL', host: new URL(s.API_URL).hostname.replace(/^\[|\]$/g, '') }]),
    ],
    probe: findProbe(s),
  });
}

/** Null: without all of its settings there is no probe. */
function findProbe(s: z.output<typeof Settings>) {
  const { API_URL: api, PROBE_KEY: key, PROBE_ORGANIZATION_ID: organizationId } = s;
  const { PROBE_WEBHOOK_ID: webhookId, PROBE_WEBHOOK_SECRET: webhookSecret } = s;
  if (!api || !key || !organizationId || !webhookId || !webhookSecret) return null;
  return {
    region: s.REGION,
    api,
    key,
    organizationId,
    webhookId,
    webhookSecret,
    port: s.PROBE_PORT,
  };
}

export type DoctorConfig = ReturnType<typeof readConfig>;
export type ProbeConfig = NonNullable<DoctorConfig['probe']>;
