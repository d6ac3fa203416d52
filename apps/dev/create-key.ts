import { parseArgs } from 'node:util';
import { isRegion, type Region, regionCodes } from '#domain/contract/regions.ts';
import { scopes as allScopes, isScope, type Scope } from '#domain/contract/scopes.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { createKey } from '#domain/keys/create.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import { KeyRefused } from '#domain/keys/refused.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import type { Database } from '#domain/open-database.ts';
import { startCommand } from '#runtime/command-line.ts';
import { SettingsRefused } from '#runtime/errors.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { readStackSettings } from './config.ts';
import { developmentMark, withDatabase } from './databases.ts';
import { keySecretsOf, openState } from './state.ts';

const usage = `Usage: npm run dev:key -- --region us --org ID --creator USERID --scopes a,b [--expires ISO]
       npm run dev:key -- --region us --revoke KEY

Creates an API key on a stack that npm start created, or revokes one. Real keys are created in the console.
Scopes: ${allScopes.join(', ')}`;

/**
 * `npm run dev:key`: creates a key without a second factor. The owner does not need the permission
 * to manage keys, but the key can carry only permissions that the owner has. Exit code 0, 1 when
 * refused, 2 for a wrong call.
 */
const flags = startCommand({ usage, read: readFlags });
try {
  await main(flags);
} catch (error) {
  const isExpected = error instanceof KeyRefused || error instanceof SettingsRefused;
  console.error(
    isExpected
      ? error.message
      : `dev:key failed: ${error instanceof Error ? error.message.split('\n')[0] : error}. Is npm start running?`,
  );
  process.exitCode = 1;
}

async function main(flags: ReturnType<typeof readFlags>): Promise<void> {
  const { server, secrets } = findStack(flags.region);
  const work = async (database: Database) => {
    await assertDevelopment(database);
    if (flags.revoke !== undefined) await revoke(database, secrets, flags.revoke);
    else console.log(await create(database, secrets, flags));
  };
  await withDatabase(server, work, 'org-api-dev-key');
}

function readFlags() {
  const text = { type: 'string' } as const;
  const { region = 'us', ...rest } = parseArgs({
    // `--maker` is what the platform's scripts call it.
    options: { region: text, org: text, creator: text, maker: text, scopes: text, expires: text, revoke: text },
  }).values;
  const { org, creator = rest.maker, scopes, expires, revoke } = rest;
  if (!isRegion(region)) throw new SettingsRefused([`--region: use ${regionCodes.join(' or ')}`]);
  if (revoke !== undefined) return { region, revoke };
  if (org === undefined || creator === undefined || scopes === undefined)
    throw new SettingsRefused(['--org, --creator and --scopes are needed, or --revoke']);
  return { region, revoke, org, creator, scopes, expires };
}

/** Returns the owner's login and the secrets of the stack; the environment may name others. */
function findStack(region: Region): { server: PostgresServer; secrets: KeySecrets } {
  const settings = readStackSettings();
  const state = openState(settings.stateFolder);
  const stackUrl = state.findStack()?.regions.find((entry) => entry.region === region)?.databaseUrl;
  const server = settings.postgres ?? (stackUrl === undefined ? undefined : parsePostgresUrl(stackUrl));
  const kept = state.findSecrets(region);
  const peppers = settings.keyPeppers ?? kept?.keyPeppers;
  const tagSecrets = settings.keyTagSecrets ?? kept?.keyTagSecrets;
  if (server === undefined || peppers === undefined || tagSecrets === undefined) {
    throw new SettingsRefused([
      `there is no development stack with the region ${region}; run npm start -- --regions ${region} first`,
    ]);
  }
  return { server, secrets: keySecretsOf(region, { keyPeppers: peppers, keyTagSecrets: tagSecrets }) };
}

async function assertDevelopment(database: Database): Promise<void> {
  const { rows } = await database.pool.query<{ mark: string | null }>(
    `select current_setting('${developmentMark}', true) as mark`,
  );
  if (rows[0]?.mark !== 'on') {
    throw new SettingsRefused([
      'this database is not a development stack’s; owners create real keys in the console, with a second factor',
    ]);
  }
}

async function create(
  database: Database,
  secrets: KeySecrets,
  flags: { org: string; creator: string; scopes: string; expires: string | undefined },
): Promise<string> {
  const asked = flags.scopes.split(',').map((text) => text.trim());
  const unknown = asked.filter((text) => !isScope(text));
  if (unknown.length > 0)
    throw new SettingsRefused([`--scopes: ${unknown.join(', ')} is not a scope; use ${allScopes.join(', ')}`]);
  const expiresAt = flags.expires === undefined ? null : new Date(flags.expires);
  if (expiresAt !== null && Number.isNaN(expiresAt.getTime()))
    throw new SettingsRefused(['--expires: give an ISO 8601 date-time, for example 2027-01-31T00:00:00Z']);
  if (!/^[0-9a-f-]{36}$/i.test(flags.org)) throw new SettingsRefused(['--org: give the organization’s id, a UUID']);
  const { org: organizationId, creator: creatorId } = flags;
  const scopes = asked as Scope[];
  const input = { organizationId, creatorId, scopes, label: 'dev:key', expiresAt, byOperator: true };
  return (await createKey(database.orm.em, input, secrets)).key;
}

async function revoke(database: Database, secrets: KeySecrets, key: string): Promise<void> {
  const { rows } = await database.pool.query<{ id: string; organization_id: string }>(
    'select k.id, k.organization_id from api_key k where k.fingerprint = any ($1)',
    [fingerprints(key, secrets.peppers)],
  );
  const found = rows[0];
  const unknown = 'This stack has no such key; give the whole key, and the region it belongs to.';
  if (found === undefined) throw new KeyRefused('no_such_key', unknown);
  await revokeKey(database.orm.em, { organizationId: found.organization_id, keyId: found.id, by: 'operator' });
  console.error('Revoked; every request from now on is refused.');
}
