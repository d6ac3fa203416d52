import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'kysely';
import { z } from 'zod';
import { type Region, regionCodes } from '#domain/contract/regions.ts';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { databaseUrl, webhookSecretKeys } from '#runtime/settings/types.ts';

/** The parts of the file that `npm start` writes that are read here. */
const StackFile = z.object({
  regions: z.array(
    z.object({
      region: z.enum(regionCodes),
      databaseUrl,
      organizations: z.array(z.object({ id: z.string(), name: z.string() })),
    }),
  ),
});
const SecretsFile = z.partialRecord(z.enum(regionCodes), z.object({ webhookSecretKeys: z.string() }));

/** A development stack, opened as its owner. Never a production installation. */
export interface OpenStack {
  database: Database;
  close(): Promise<void>;
  sealingKeys: SealingKeys;
  organization: { id: string; name: string };
}

/**
 * Opens the stack that `npm start` runs.
 *
 * @param requested - null for the first region and its first organization.
 * @throws InvalidSettingsError when there is no such stack, region or organization, or when the
 * database is not marked as part of a development stack.
 */
export async function openStack(
  requested: { region: Region | null; organizationId: string | null },
  environment: Record<string, string | undefined> = process.env,
): Promise<OpenStack> {
  const folder = path.resolve(environment.ORG_API_STATE || '.org-api');
  const stack = readFile(path.join(folder, 'stack.json'), StackFile).regions;
  const entry = stack.find(({ region }) => requested.region === null || region === requested.region);
  if (entry === undefined)
    throw new InvalidSettingsError([`the stack of npm start has no region ${requested.region ?? ''}`]);
  const organization = entry.organizations.find(
    ({ id }) => requested.organizationId === null || id === requested.organizationId,
  );
  if (organization === undefined)
    throw new InvalidSettingsError([`the stack’s region ${entry.region} has no such organization`]);
  const secrets = readFile(path.join(folder, 'secrets.json'), SecretsFile)[entry.region];
  const sealing = webhookSecretKeys.safeParse(secrets?.webhookSecretKeys);
  if (!sealing.success)
    throw new InvalidSettingsError(['the stack has no keys for webhook secrets: stop it and run npm start again']);
  const database = await openDatabase({
    server: entry.databaseUrl,
    applicationName: 'org-api-listen',
    poolMax: 2,
  });
  try {
    await assertDevelopment(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { database, close: () => database.close(), sealingKeys: sealing.data, organization };
}

/** `npm start` marks its databases. @throws InvalidSettingsError for any other, and when it does not answer. */
export async function assertDevelopment(database: Database): Promise<void> {
  const [row] = await database
    .query(sql<{ mark: string | null }>`select current_setting('org_api.development', true) as mark`)
    .catch(() => {
      throw new InvalidSettingsError(['the stack’s database does not answer; is npm start running?']);
    });
  if (row?.mark !== 'on')
    throw new InvalidSettingsError(['this database is not a development stack’s; use the console of the installation']);
}

function readFile<S extends z.ZodType>(file: string, schema: S): z.output<S> {
  if (!existsSync(file))
    throw new InvalidSettingsError([
      'no development stack runs here: run npm start first, or give --secret and send events to this port',
    ]);
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    throw new InvalidSettingsError([`${file} cannot be read: run npm start again`]);
  }
}
