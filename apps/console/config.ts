import { z } from 'zod';
import { readFollowedSettings } from '#runtime/settings/follow.ts';
import { currentKeySecrets } from '#runtime/settings/key-secrets.ts';
import { mailFrom } from '#runtime/settings/mail.ts';
import { buildServerConfig, serverSettings } from '#runtime/settings/server.ts';
import { findTemporalServer, type TemporalServer, temporalAccess } from '#runtime/settings/temporal.ts';
import { tryPostgres } from '#runtime/settings/try-connection.ts';
import { trySecrets } from '#runtime/settings/try-secrets.ts';
import {
  consoleUrl,
  databaseUrl,
  httpUrl,
  keyPeppers,
  keyTagSecrets,
  region,
  temporalAddress,
  webhookAllow,
  webhookSecretKeys,
} from '#runtime/settings/types.ts';

/** A download of the whole audit log takes minutes on a slow line. */
const downloadDeadlineMs = 30 * 60_000;

export const Settings = z.object({
  REGION: region,
  CONSOLE_DATABASE_URL: databaseUrl.describe(
    'PostgreSQL URL of the login of the console. `migrate` creates the login and gives it its password and rights.',
  ),
  CONSOLE_URL: consoleUrl.describe(
    'Address that people open: https and a host name (http://localhost for development). Passkeys are bound to its ' +
      'host, and enrolment links lead there.',
  ),
  MAIL_FROM: mailFrom
    .optional()
    .describe('Sender of mails, the same as the worker’s. With it, invitations are mailed and their links not shown.'),
  API_URL: httpUrl.describe('Base URL of this region’s read API, for the line that a new key is shown with.'),
  KEY_PEPPERS: keyPeppers,
  KEY_TAG_SECRETS: keyTagSecrets,
  WEBHOOK_SECRET_KEYS: webhookSecretKeys,
  WEBHOOK_ALLOW: webhookAllow,
  TEMPORAL_ADDRESS: temporalAddress.optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default').describe('Temporal namespace of this region.'),
  ...temporalAccess,
  ...serverSettings({ port: 8_081 }),
});

export type ConsoleConfig = ReturnType<typeof readConfig>;

/** @throws InvalidSettingsError with every problem at once. */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const { settings: s, followed } = readFollowedSettings({
    schema: Settings,
    environment,
    names: ['CONSOLE_DATABASE_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY'],
    tries: {
      CONSOLE_DATABASE_URL: tryPostgres('console'),
      KEY_PEPPERS: trySecrets,
      KEY_TAG_SECRETS: trySecrets,
      WEBHOOK_SECRET_KEYS: trySecrets,
      TEMPORAL_API_KEY: async (apiKey) => {
        // Temporal's client takes as long to load as everything else.
        const { tryTemporal } = await import('#workflows/connection.ts');
        return temporal === null ? null : tryTemporal({ ...temporal, apiKey: () => apiKey });
      },
    },
  });
  const temporal: TemporalServer | null = findTemporalServer(
    s,
    s.TEMPORAL_NAMESPACE,
    () => followed.values.TEMPORAL_API_KEY,
  );
  const { values } = followed;
  const relyingParty = { id: s.CONSOLE_URL.hostname, name: 'Organization console', origin: s.CONSOLE_URL.origin };
  return Object.freeze({
    /** `watchSettings` keeps the values of secrets up to date. */
    followed,
    keys: currentKeySecrets(s.REGION, values),
    factors: {
      relyingParty,
      get sealingKeys() {
        return values.WEBHOOK_SECRET_KEYS;
      },
    },
    get database() {
      return values.CONSOLE_DATABASE_URL;
    },
    ...buildServerConfig(s, downloadDeadlineMs),
    region: s.REGION,
    origin: s.CONSOLE_URL.origin,
    apiUrl: s.API_URL,
    /** Whether workers send mail. */
    sendsMail: s.MAIL_FROM !== undefined,
    webhookAllow: s.WEBHOOK_ALLOW,
    /** Null: this installation of the console knows no Temporal. */
    temporal,
  });
}
