import { z } from 'zod';
import { defaultKeepAliveSeconds } from '#runtime/http-server.ts';
import { boundSettings, boundsOf } from '#runtime/settings/bounds.ts';
import { followSettings, sameButLogin } from '#runtime/settings/follow.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { temporalAccess, temporalServerOf } from '#runtime/settings/temporal.ts';
import {
  addressBlocks,
  databaseUrl,
  httpUrl,
  keyPeppers,
  keyTagSecrets,
  logLevel,
  port,
  region,
  temporalAddress,
  webhookSecretKeys,
  wholeNumber,
} from '#runtime/settings/types.ts';

/** Scheme, host and port that people open: https, or http on localhost. Passkeys are bound to its host, which therefore is a name and no address. */
const origin = z.string().transform((text, context): URL => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && url.hostname === 'localhost');
  const isName = url !== null && !/^[\d.]+$|^\[/.test(url.hostname);
  if (url !== null && isSafe && isName && url.pathname === '/' && url.search === '' && url.username === '') return url;
  context.addIssue({
    code: 'custom',
    message: 'must be https:// and a host name, without a path (http://localhost:PORT for development)',
  });
  return z.NEVER;
});

/** The console's settings. README lists each with its unit and default. */
export const Settings = z.object({
  REGION: region.describe('us or ca'),
  CONSOLE_DATABASE_URL: databaseUrl.describe('the PostgreSQL URL of the console’s own login'),
  CONSOLE_URL: origin.describe('the address that people open, for example https://console.example.com'),
  API_URL: httpUrl.describe('the base URL of this region’s read API, shown to people with their first key'),
  KEY_PEPPERS: keyPeppers.describe('the peppers of key fingerprints, version:base64, newest first'),
  KEY_TAG_SECRETS: keyTagSecrets.describe('the secrets of key tags, base64, newest first'),
  WEBHOOK_SECRET_KEYS: webhookSecretKeys.describe('the keys that seal signing secrets, version:base64, newest first'),
  WEBHOOK_ALLOW: addressBlocks,
  TEMPORAL_ADDRESS: temporalAddress.optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  ...temporalAccess,
  HOST: z.string().default('0.0.0.0'),
  PORT: port.default(8081),
  METRICS_PORT: port.default(9090),
  TRUSTED_PROXIES: addressBlocks,
  DATABASE_POOL_MAX: wholeNumber(2, 100).default(10),
  DRAIN_DELAY_MS: wholeNumber(0, 60_000).default(500),
  KEEP_ALIVE_SECONDS: wholeNumber(1, 86_400).default(defaultKeepAliveSeconds),
  ...boundSettings({ answerDeadlineSeconds: 1_800 }),
  LOG_LEVEL: logLevel,
});

export type ConsoleConfig = ReturnType<typeof readConfig>;

/** @throws SettingsRefused with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  const followed = followSettings({
    schema: Settings,
    environment,
    parsed: s,
    names: ['CONSOLE_DATABASE_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY'],
    mayReplace: { CONSOLE_DATABASE_URL: sameButLogin },
  });
  const { values } = followed;
  const relyingParty = { id: s.CONSOLE_URL.hostname, name: 'Organization console', origin: s.CONSOLE_URL.origin };
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
    factors: {
      relyingParty,
      get sealingKeys() {
        return values.WEBHOOK_SECRET_KEYS;
      },
    },
    get databaseUrl() {
      return values.CONSOLE_DATABASE_URL;
    },
    region: s.REGION,
    databasePoolMax: s.DATABASE_POOL_MAX,
    origin: s.CONSOLE_URL.origin,
    apiUrl: s.API_URL,
    webhookAllow: s.WEBHOOK_ALLOW,
    /** Null: this installation of the console knows no Temporal. */
    temporal: temporalServerOf(s, s.TEMPORAL_NAMESPACE, () => values.TEMPORAL_API_KEY),
    host: s.HOST,
    port: s.PORT,
    metricsPort: s.METRICS_PORT,
    trustedProxies: s.TRUSTED_PROXIES,
    drainDelayMs: s.DRAIN_DELAY_MS,
    keepAliveSeconds: s.KEEP_ALIVE_SECONDS,
    bounds: boundsOf(s),
    logLevel: s.LOG_LEVEL,
  });
}
