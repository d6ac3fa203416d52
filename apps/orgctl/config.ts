import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { isRegion, type Region, regionCodes } from '#domain/contract/regions.ts';
import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { findTemporalServer, temporalAccess } from '#runtime/settings/temporal.ts';
import {
  databaseUrl,
  httpUrl,
  keyPeppers,
  keyTagSecrets,
  temporalAddress,
  webhookAllow,
  webhookSecretKeys,
} from '#runtime/settings/types.ts';

/** The settings of `orgctl`. Those that are not set come from the stack of `npm start`. */
export const Settings = z.object({
  DATABASE_URL: databaseUrl.meta({
    description: 'PostgreSQL URL of the region, of the database’s owner. `npm start` starts one.',
    shown: 'that of the development stack',
  }),
  WEBHOOK_SECRET_KEYS: webhookSecretKeys.optional(),
  WEBHOOK_ALLOW: webhookAllow,
  KEY_PEPPERS: keyPeppers.optional(),
  KEY_TAG_SECRETS: keyTagSecrets.optional(),
  TEMPORAL_ADDRESS: temporalAddress.optional(),
  TEMPORAL_NAMESPACE: z.string().optional().describe('Temporal namespace of this region.'),
  ...temporalAccess,
  CONSOLE_URL: httpUrl.optional().describe('Address of the console, for enrolment links.'),
});

/** The part of the file that `npm start` writes that is read here. */
const StackFile = z.object({
  regions: z.array(
    z.object({
      region: z.enum(regionCodes),
      databaseUrl: z.string(),
      console: z.string().optional(),
      temporalAddress: z.string().optional(),
      temporalNamespace: z.string().optional(),
    }),
  ),
});
const SecretsFile = z.partialRecord(
  z.enum(regionCodes),
  z.object({
    keyPeppers: z.string().optional(),
    keyTagSecrets: z.string().optional(),
    webhookSecretKeys: z.string().optional(),
  }),
);

type StackRegion = z.output<typeof StackFile>['regions'][number];

/** What `npm start` sets for its workers: its receivers are on this machine. */
const stackAllow = '127.0.0.0/8,::1';

export type OrgctlConfig = ReturnType<typeof readConfig>;

/** The environment of a call, completed by the stack's settings. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns where to act. The stack's settings are used only with the stack's own database, so that
 * another installation's rows are never written with a development stack's secrets.
 *
 * @param requestedRegion - `--region`; without it `REGION`, or the only region of a stack.
 * @throws InvalidSettingsError for settings, UsageError for the region.
 */
export function readConfig(requestedRegion: string | null, environment: Environment = process.env) {
  const { region, environment: completed } = readEnvironment(requestedRegion, environment);
  const s = readSettings(Settings, completed);
  return Object.freeze({
    region,
    database: s.DATABASE_URL,
    /** Null: secrets can be neither created nor rotated. */
    sealingKeys: s.WEBHOOK_SECRET_KEYS ?? null,
    allow: s.WEBHOOK_ALLOW,
    /** Null: keys are found by their id only. */
    peppers: s.KEY_PEPPERS ?? null,
    /** The base URL of enrolment links; null: none can be created. */
    consoleUrl: s.CONSOLE_URL ?? null,
    /** Null: keys cannot be created. */
    tagSecrets: s.KEY_TAG_SECRETS ?? null,
    /** Null: running workflows cannot be notified. */
    temporal: findTemporalServer(s, s.TEMPORAL_NAMESPACE ?? 'default'),
  });
}

/** Returns the region and the environment of a call, as `readConfig` explains. @throws likewise */
export function readEnvironment(requestedRegion: string | null, environment: Environment = process.env) {
  const folder = path.resolve(environment.ORG_API_STATE || '.org-api');
  const stack = readFile(path.join(folder, 'stack.json'), StackFile)?.regions ?? [];
  const region = selectRegion(requestedRegion, environment.REGION || null, stack);
  const entry = stack.find((one) => one.region === region);
  const isSet = (name: string) => Boolean(environment[name] || environment[`${name}_FILE`]);
  const isOfStack =
    entry !== undefined &&
    (!isSet('DATABASE_URL') || isSameDatabase(environment.DATABASE_URL ?? '', entry.databaseUrl));
  if (entry === undefined && stack.length > 0 && !isSet('DATABASE_URL'))
    throw new InvalidSettingsError([
      `the stack of npm start has no region ${region}; it has ${stack.map((one) => one.region).join(' and ')}`,
    ]);
  const fromStack = isOfStack ? stackSettings(folder, entry) : {};
  const missing = Object.entries(fromStack).filter(([name]) => !isSet(name));
  return { region, environment: { ...environment, ...Object.fromEntries(missing) } };
}

function selectRegion(requested: string | null, set: string | null, stack: StackRegion[]): Region {
  const only = stack.length === 1 ? (stack[0]?.region ?? null) : null;
  const region = requested ?? set ?? only;
  if (region === null) throw new UsageError(`Choose a region: --region ${regionCodes.join(' or --region ')}.`);
  if (!isRegion(region)) throw new UsageError(`--region must be ${regionCodes.join(' or ')}.`);
  if (requested !== null && set !== null && requested !== set)
    throw new UsageError(`--region ${requested} contradicts REGION, which is ${set}.`);
  return region;
}

function stackSettings(folder: string, entry: StackRegion): Record<string, string | undefined> {
  const secrets = readFile(path.join(folder, 'secrets.json'), SecretsFile)?.[entry.region];
  return {
    DATABASE_URL: entry.databaseUrl,
    WEBHOOK_SECRET_KEYS: secrets?.webhookSecretKeys,
    WEBHOOK_ALLOW: stackAllow,
    KEY_PEPPERS: secrets?.keyPeppers,
    KEY_TAG_SECRETS: secrets?.keyTagSecrets,
    TEMPORAL_ADDRESS: entry.temporalAddress,
    TEMPORAL_NAMESPACE: entry.temporalNamespace,
    CONSOLE_URL: entry.console,
  };
}

function isSameDatabase(one: string, other: string): boolean {
  const [a, b] = [one, other].map((url) => databaseUrl.safeParse(url).data);
  return a !== undefined && b !== undefined && a.host === b.host && a.port === b.port && a.database === b.database;
}

/** Returns null when there is no such file. */
function readFile<S extends z.ZodType>(file: string, schema: S): z.output<S> | null {
  if (!existsSync(file)) return null;
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    throw new InvalidSettingsError([`${file} cannot be read: run npm start again, or set DATABASE_URL and REGION`]);
  }
}
