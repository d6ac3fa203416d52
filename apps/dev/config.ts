import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { isRegion, regionCodes } from '#domain/contract/regions.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { hostAndPort } from '#runtime/settings/connection-url.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { formatRedisUrl } from '#runtime/settings/redis.ts';
import { databaseUrl, port, redisUrl, temporalAddress } from '#runtime/settings/types.ts';

function describeExternalServer(server: string) {
  return { description: `A ${server} server to use instead of the embedded one.`, shown: 'embedded' };
}

export const Settings = z.object({
  ORG_API_STATE: z.string().default('.org-api').describe('Folder of the development stack.'),
  ORG_API_PORT: port.default(8080).describe('First port of the development stack. Each region takes ten.'),
  DATABASE_URL: databaseUrl.optional().meta(describeExternalServer('PostgreSQL')),
  REDIS_URL: redisUrl.optional().meta(describeExternalServer('Redis')),
  TEMPORAL_ADDRESS: temporalAddress.optional().meta(describeExternalServer('Temporal')),
});

/** What `npm start` brings up. */
export type DevConfig = ReturnType<typeof readConfig>;

export const usage = `Usage: npm start -- [--regions us,ca] [--data FILE]... [--no-samples]

  --regions us,ca   which regions to bring up (us)
  --data FILE       an organizations file to import as well; may be repeated
  --no-samples      import no sample organizations

Environment: ORG_API_STATE (.org-api) folder of the stack's state; ORG_API_PORT (8080) first of ten ports a region;
DATABASE_URL, REDIS_URL and TEMPORAL_ADDRESS use servers that run already. Every other documented setting of an app
that the stack does not decide itself is passed on to it, for example DELIVERY_SCHEDULE=1s,2s npm start.`;

/**
 * Reads the command line and the environment of `npm start`.
 *
 * @throws InvalidSettingsError when a flag or setting is wrong.
 */
export function readConfig(args: string[], environment: Record<string, string | undefined> = process.env) {
  const s = readSettings(Settings, environment);
  const flags = parseFlags(args);
  const codes = [...new Set(flags.regions.split(',').map((text) => text.trim()))];
  const unknown = codes.filter((text) => !isRegion(text));
  if (unknown.length > 0)
    throw new InvalidSettingsError([
      `--regions: ${unknown.join(', ')} is not a region; use ${regionCodes.join(' or ')}`,
    ]);
  return {
    /** Absolute path of the folder that holds all data of the stack. */
    stateFolder: path.resolve(s.ORG_API_STATE),
    /** Port of the first region's API. Each region takes ten ports. */
    firstPort: s.ORG_API_PORT,
    postgres: s.DATABASE_URL ?? null,
    redisUrl: s.REDIS_URL === undefined ? null : formatRedisUrl(s.REDIS_URL),
    temporalAddress: s.TEMPORAL_ADDRESS === undefined ? null : hostAndPort(s.TEMPORAL_ADDRESS),
    regions: codes.filter(isRegion),
    /** Absolute paths of files to import in addition to the samples. */
    dataFiles: flags.data.map((file) => path.resolve(file)),
    samples: !flags['no-samples'],
  };
}

function parseFlags(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        regions: { type: 'string', default: 'us' },
        data: { type: 'string', multiple: true, default: [] },
        'no-samples': { type: 'boolean' },
      },
    });
    // Positional arguments after `--data A` are further files. Without --data they are a mistake.
    if (positionals.length > 0 && values.data.length === 0) throw new Error(`${positionals[0]} is not an option.`);
    return { ...values, data: [...values.data, ...positionals] };
  } catch (error) {
    throw new InvalidSettingsError([`${(error as Error).message.split('\n')[0]} See npm start -- --help`]);
  }
}
