import { z } from 'zod';
import { defaultKeepAliveSeconds } from '#runtime/http-server.ts';
import { boundSettings, boundsOf } from '#runtime/settings/bounds.ts';
import { followSettings, sameButLogin } from '#runtime/settings/follow.ts';
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
export const Settings = z.object({
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
  KEEP_ALIVE_SECONDS: wholeNumber(1, 86_400).default(defaultKeepAliveSeconds),
  ...boundSettings({ answerDeadlineSeconds: 60 }),
  ANSWER_MEMORY_MIB: wholeNumber(16, 65_536).default(128),
  LOG_LEVEL: logLevel,
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
});

export type ApiConfig = ReturnType<typeof readConfig>;

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  const followed = followSettings({
    schema: Settings,
    environment,
    parsed: s,
    names: ['API_DATABASE_URL', 'REDIS_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS'],
    mayReplace: { API_DATABASE_URL: sameButLogin, REDIS_URL: sameButLogin },
  });
  const { values } = followed;
  return Object.freeze({
    /** Secrets: each look-up gives the newest value of its file. `watchSettings` keeps them up to date. */
    followed,
    keys: {
      region: s.REGION,
      get peppers() {
        return values.KEY_PEPPERS;
      },
      get tagSecrets() {
        return values.KEY_TAG_SECRETS;
      },
    },
    get databaseUrl() {
      return values.API_DATABASE_URL;
    },
    get redisUrl() {
      return values.REDIS_URL ?? null;
    },
    region: s.REGION,
    baseUrls: { us: s.BASE_URL_US, ca: s.BASE_URL_CA },
    databasePoolMax: s.DATABASE_POOL_MAX,
    host: s.HOST,
    port: s.PORT,
    metricsPort: s.METRICS_PORT,
    trustedProxies: s.TRUSTED_PROXIES,
    drainDelayMs: s.DRAIN_DELAY_MS,
    keepAliveSeconds: s.KEEP_ALIVE_SECONDS,
    bounds: boundsOf(s),
    answerMemoryMiB: s.ANSWER_MEMORY_MIB,
    logLevel: s.LOG_LEVEL,
    otlpEndpoint: s.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  });
}
