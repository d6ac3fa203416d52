import { z } from 'zod';
import { readSettings } from '#runtime/settings/read.ts';
import {
  addressBlocks,
  databaseUrl,
  httpUrl,
  keyPeppers,
  keyTagSecrets,
  logLevel,
  port,
  redisUrl,
  region,
  wholeNumber,
} from '#runtime/settings/types.ts';
import { defaultBaseUrls } from './openapi/base-urls.ts';

/** The read API's settings. README lists each with its unit and default. */
const Settings = z.object({
  REGION: region.describe('us or ca'),
  API_DATABASE_URL: databaseUrl.describe('the PostgreSQL URL of the API’s own login'),
  REDIS_URL: redisUrl.optional(),
  KEY_PEPPERS: keyPeppers.describe('the peppers of key fingerprints, version:base64, newest first'),
  KEY_TAG_SECRETS: keyTagSecrets.describe('the secrets of key tags, base64, newest first'),
  BASE_URL_US: httpUrl.default(defaultBaseUrls.us),
  BASE_URL_CA: httpUrl.default(defaultBaseUrls.ca),
  HOST: z.string().default('0.0.0.0'),
  PORT: port.default(8080),
  METRICS_PORT: port.default(9090),
  TRUSTED_PROXIES: addressBlocks,
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10),
  DRAIN_DELAY_MS: wholeNumber(0, 60_000).default(500),
  LOG_LEVEL: logLevel,
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
});

export type ApiConfig = ReturnType<typeof readConfig>;

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    keys: { region: s.REGION, peppers: s.KEY_PEPPERS, tagSecrets: s.KEY_TAG_SECRETS },
    region: s.REGION,
    baseUrls: { us: s.BASE_URL_US, ca: s.BASE_URL_CA },
    databaseUrl: s.API_DATABASE_URL,
    databasePoolMax: s.DATABASE_POOL_MAX,
    redisUrl: s.REDIS_URL ?? null,
    host: s.HOST,
    port: s.PORT,
    metricsPort: s.METRICS_PORT,
    trustedProxies: s.TRUSTED_PROXIES,
    drainDelayMs: s.DRAIN_DELAY_MS,
    logLevel: s.LOG_LEVEL,
    otlpEndpoint: s.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  });
}
