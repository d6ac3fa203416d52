import { z } from 'zod';
import type { Region } from '#domain/contract/regions.ts';
import { readFollowedSettings } from '#runtime/settings/follow.ts';
import { currentKeySecrets } from '#runtime/settings/key-secrets.ts';
import { buildServerConfig, serverSettings } from '#runtime/settings/server.ts';
import { tryPostgres, tryRedis } from '#runtime/settings/try-connection.ts';
import { trySecrets } from '#runtime/settings/try-secrets.ts';
import {
  databaseUrl,
  httpUrl,
  keyPeppers,
  keyTagSecrets,
  otlpEndpoint,
  redisUrl,
  region,
  wholeNumber,
} from '#runtime/settings/types.ts';

/**
 * The servers in the committed document, and the defaults of `BASE_URL_US` and `BASE_URL_CA`. The
 * hosts do not exist: an installation sets its own. RFC 2606 reserves `.example`, and the
 * linter of OpenAPI rejects `example.com`.
 */
export const defaultBaseUrls: Record<Region, string> = {
  us: 'https://us.org-api.example',
  ca: 'https://ca.org-api.example',
};

export const Settings = z.object({
  REGION: region,
  API_DATABASE_URL: databaseUrl.describe(
    'PostgreSQL URL of the login of the API. `migrate` creates the login and gives it its password and rights.',
  ),
  REDIS_URL: redisUrl
    .optional()
    .describe(
      'Redis 7 or newer with `noeviction`: one, a cluster or sentinels. Without it each process limits by itself.',
    ),
  KEY_PEPPERS: keyPeppers,
  KEY_TAG_SECRETS: keyTagSecrets,
  BASE_URL_US: httpUrl
    .default(defaultBaseUrls.us)
    .describe('Public URL of the read API in the United States, for the reference and for keys of the other region.'),
  BASE_URL_CA: httpUrl
    .default(defaultBaseUrls.ca)
    .describe('Public URL of the read API in Canada, for the reference and for keys of the other region.'),
  ...serverSettings({ port: 8_080 }),
  RESPONSE_MEMORY_MIB: wholeNumber(16, 65_536)
    .default(128)
    .describe(
      'MiB for responses that are built and sent. One organization gets at most 60 % of it, and one key 40 % of the ' +
        'three quarters for large responses. A read waits up to 5 s for memory and then gets 503.',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint,
});

/**
 * How long a read waits in all for memory and for the begin of its statement. It may wait for the
 * limiter, a free connection and the insert of its audit entry besides.
 */
const readWaitMs = 5_000;

export type ApiConfig = ReturnType<typeof readConfig>;

/** @throws InvalidSettingsError with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const { settings: s, followed } = readFollowedSettings({
    schema: Settings,
    environment,
    names: ['API_DATABASE_URL', 'REDIS_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS'],
    tries: {
      API_DATABASE_URL: tryPostgres('api'),
      REDIS_URL: (next, old): Promise<string | null> => tryRedis(next, old, s.REGION),
      KEY_PEPPERS: trySecrets,
      KEY_TAG_SECRETS: trySecrets,
    },
  });
  const { values } = followed;
  return Object.freeze({
    /** `watchSettings` keeps the values of secrets current. */
    followed,
    keys: currentKeySecrets(s.REGION, values),
    get database() {
      return values.API_DATABASE_URL;
    },
    get redis() {
      return values.REDIS_URL ?? null;
    },
    ...buildServerConfig(s, 60_000),
    region: s.REGION,
    baseUrls: { us: s.BASE_URL_US, ca: s.BASE_URL_CA },
    responseMemoryMiB: s.RESPONSE_MEMORY_MIB,
    readWaitMs,
    otlpEndpoint: s.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  });
}
