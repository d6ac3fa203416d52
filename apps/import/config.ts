import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { type Region, regionCodes } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { databaseUrl, region } from '#runtime/settings/types.ts';

export const Settings = z.object({
  DATABASE_URL: databaseUrl.optional().meta({
    description: 'PostgreSQL URL (15 or newer) of the owner of the database.',
    shown: 'the development stack’s',
  }),
  REGION: region
    .optional()
    .meta({ description: 'Region that this installation serves: `us` or `ca`.', shown: 'the development stack’s' }),
  ORG_API_STATE: z.string().default('.org-api').describe('Folder of the development stack.'),
});

/** The part of the file that `npm start` writes that is read here. */
const Stack = z.object({ regions: z.array(z.object({ region: z.enum(regionCodes), databaseUrl })) });

/** One installation to import into. */
export interface Installation {
  region: Region;
  server: PostgresServer;
}

export interface ImportConfig {
  installations: [Installation, ...Installation[]];
  /** The folder in which npm was called. npm itself changes to the project's folder. */
  callerFolder: string;
}

/**
 * Returns the installations to import into: the one that `DATABASE_URL` and `REGION` name, or those
 * of the stack that `npm start` runs. With several, the region of each file decides.
 */
export function readConfig(environment: Record<string, string | undefined> = process.env): ImportConfig {
  const s = readSettings(Settings, environment);
  const callerFolder = environment.INIT_CWD ?? process.cwd();
  const stack = s.DATABASE_URL !== undefined && s.REGION !== undefined ? [] : readStack(path.resolve(s.ORG_API_STATE));
  const wanted = stack.filter((one) => s.REGION === undefined || one.region === s.REGION);
  if (s.DATABASE_URL !== undefined) {
    const of = s.REGION ?? (wanted.length === 1 ? wanted[0]?.region : undefined);
    if (of === undefined)
      throw new InvalidSettingsError([
        'REGION is missing: DATABASE_URL alone does not say which region that database serves',
      ]);
    return { installations: [{ region: of, server: s.DATABASE_URL }], callerFolder };
  }
  const [first, ...others] = wanted;
  if (first === undefined) {
    const why =
      stack.length > 0 ? `The stack of npm start has no region ${s.REGION}` : 'There is no database to import into';
    throw new InvalidSettingsError([`${why}: run npm start first, or set DATABASE_URL and REGION`]);
  }
  return { installations: [first, ...others], callerFolder };
}

function readStack(folder: string): Installation[] {
  const file = path.join(folder, 'stack.json');
  if (!existsSync(file)) return [];
  try {
    const { regions } = Stack.parse(JSON.parse(readFileSync(file, 'utf8')));
    return regions.map(({ region, databaseUrl: server }) => ({ region, server }));
  } catch {
    throw new InvalidSettingsError([
      `${file} cannot be understood: run npm start again, or set DATABASE_URL and REGION`,
    ]);
  }
}
