import { z } from 'zod';
import { isSecret } from '#domain/webhooks/secret.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { logLevel, port, region } from '#runtime/settings/types.ts';

/** `{"name": ["whsec_…", …]}`: the secrets of each endpoint, in any order. */
export const Secrets = z.record(
  z.string().regex(/^[\w-]{1,80}$/, 'a name has letters, digits, _ and -'),
  z.array(z.string().refine(isSecret, 'a secret is whsec_ and 32 base64 characters')).max(10),
);

export const Settings = z.object({
  REGION: region.default('us'),
  HOST: z.string().default('127.0.0.1').describe('Address to listen on.'),
  PORT: port.default(8090).describe('Port to listen on.'),
  RECEIVER_SECRETS: z
    .string()
    .default('{}')
    .transform(readSecrets)
    .describe('Signing secrets of each endpoint of the sample receiver, `{"name": ["whsec_…"]}`.'),
  LOG_LEVEL: logLevel,
});

function readSecrets(text: string, context: z.RefinementCtx): z.output<typeof Secrets> {
  try {
    return Secrets.parse(JSON.parse(text), { reportInput: false });
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON like {"name": ["whsec_…"]}' });
    return z.NEVER;
  }
}

/**
 * Reads the sample receiver's settings. By default it listens on loopback only.
 *
 * @throws InvalidSettingsError with every problem at once.
 */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return Object.freeze({
    region: s.REGION,
    host: s.HOST,
    port: s.PORT,
    secrets: s.RECEIVER_SECRETS,
    logLevel: s.LOG_LEVEL,
  });
}

export type ReceiverConfig = ReturnType<typeof readConfig>;
