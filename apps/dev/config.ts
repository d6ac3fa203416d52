import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { isRegion, type Region, regionCodes } from '#domain/contract/regions.ts';
import { SettingsRefused } from '#runtime/errors.ts';
import { hostAndPort } from '#runtime/settings/connection-url.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { databaseUrl, port, redisUrl, temporalAddress } from '#runtime/settings/types.ts';

export const Settings = z.object({
  ORG_API_STATE: z.string().default('.org-api').describe('Folder of the development stack.'),
  ORG_API_PORT: port.default(8080).describe('First port of the development stack. Each region takes ten.'),
  DATABASE_URL: databaseUrl
    .optional()
    .meta({ description: 'A PostgreSQL server to use instead of the embedded one.', shown: 'embedded' }),
  REDIS_URL: redisUrl
    .optional()
    .meta({ description: 'A Redis server to use instead of the embedded one.', shown: 'embedded' }),
  TEMPORAL_ADDRESS: temporalAddress
    .optional()
    .meta({ description: 'A Temporal server to use instead of the embedded one.', shown: 'embedded' }),
  KEY_PEPPERS: z.string().optional().describe('Peppers of the stack’s keys, as of the API.'),
  KEY_TAG_SECRETS: z.string().optional().describe('Secrets of the tags of the stack’s keys, as of the API.'),
});

/** What `npm start` brings up. */
export interface DevConfig extends ReturnType<typeof readStackSettings> {
  regions: Region[];
  /** Absolute paths of files to import in addition to the samples. */
  dataFiles: string[];
  samples: boolean;
}

export const usage = `Usage: npm start -- [--regions us,ca] [--data FILE]... [--no-samples]

  --regions us,ca   which regions to bring up (us)
  --data FILE       an organizations file to import as well; may be repeated
  --no-samples      import no sample organizations

Environment: ORG_API_STATE (.org-api) folder of the stack's state; ORG_API_PORT (8080) first of ten ports a region;
DATABASE_URL, REDIS_URL and TEMPORAL_ADDRESS use servers that run already. Every other documented setting of an app
that the
stack does not decide itself is passed on to it, for example DELIVERY_SCHEDULE=1s,2s npm start.`;

/** Reads where the stack's state is and which servers it must use, also for other commands. */
export function readStackSettings(environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  return {
    /** Absolute path of the folder that holds all data of the stack. */
    stateFolder: path.resolve(s.ORG_API_STATE),
    /** Port of the first region's API. Each region takes ten ports. */
    firstPort: s.ORG_API_PORT,
    postgres: s.DATABASE_URL ?? null,
    redis: s.REDIS_URL ?? null,
    temporalAddress: s.TEMPORAL_ADDRESS === undefined ? null : hostAndPort(s.TEMPORAL_ADDRESS),
    keyPeppers: s.KEY_PEPPERS ?? null,
    keyTagSecrets: s.KEY_TAG_SECRETS ?? null,
  };
}

/**
 * Reads the command line and the environment of `npm start`.
 *
 * @throws SettingsRefused when a flag or setting is wrong.
 */
export function readConfig(args: string[], environment: Record<string, string | undefined> = process.env): DevConfig {
  const flags = parseFlags(args);
  const regions = [...new Set((flags.regions ?? 'us').split(',').map((text) => text.trim()))];
  const unknown = regions.filter((text) => !isRegion(text));
  if (unknown.length > 0)
    throw new SettingsRefused([`--regions: ${unknown.join(', ')} is not a region; use ${regionCodes.join(' or ')}`]);
  const dataFiles = (flags.data ?? []).map((file) => path.resolve(file));
  return { regions: regions as Region[], dataFiles, samples: !flags['no-samples'], ...readStackSettings(environment) };
}

function parseFlags(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        regions: { type: 'string' },
        data: { type: 'string', multiple: true },
        'no-samples': { type: 'boolean' },
      },
    });
    // Positional arguments after `--data A` are further files. Without --data they are a mistake.
    if (positionals.length > 0 && values.data === undefined)
      throw new SettingsRefused([`${positionals[0]} is not an option; see npm start -- --help`]);
    return { ...values, data: [...(values.data ?? []), ...positionals] };
  } catch (error) {
    if (error instanceof SettingsRefused) throw error;
    throw new SettingsRefused([`${(error as Error).message.split('\n')[0]} See npm start -- --help`]);
  }
}
