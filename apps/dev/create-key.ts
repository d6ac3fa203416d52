import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { parseMoment } from '#domain/contract/moment.ts';
import { scopes as allScopes, isScope } from '#domain/contract/scopes.ts';
import type { Database } from '#domain/db/database.ts';
import { createKey } from '#domain/keys/create.ts';
import { KeyError } from '#domain/keys/errors.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { startCommand } from '#runtime/command-line.ts';
import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import { readConfig } from '../orgctl/config.ts';
import { assertDevelopment } from '../receiver/listen/stack.ts';
import { withDatabase } from './databases.ts';

const usage = `Usage: npm run dev:key -- --region us --org ID --creator USERID --scopes a,b [--expires ISO]
       npm run dev:key -- --region us --revoke KEY

Creates an API key on a stack that npm start created, or revokes one. Real keys are created in the console.
Scopes: ${allScopes.join(', ')}`;

/**
 * `npm run dev:key`: creates a key without a second factor. The creator does not need the permission
 * to manage keys, but the key can carry only permissions that they have. Exit code 0, 1 when
 * rejected, 2 for a wrong call.
 */
const flags = startCommand({ usage, read: readFlags });
try {
  const { region, database: server, peppers, tagSecrets } = readConfig(flags.region);
  if (peppers === null || tagSecrets === null)
    throw new InvalidSettingsError([`there is no development stack here: run npm start -- --regions ${region} first`]);
  const secrets = { region, peppers, tagSecrets };
  await withDatabase(server, async (database) => {
    await assertDevelopment(database);
    if (flags.revoke !== undefined) await revoke(database, secrets, flags.revoke);
    else console.log(await create(database, secrets, flags));
  });
} catch (error) {
  const isExpected = [KeyError, InvalidSettingsError, UsageError].some((kind) => error instanceof kind);
  const [sentence = ''] = error instanceof Error ? error.message.split(isExpected ? /$/ : '\n') : [String(error)];
  console.error(isExpected ? sentence : `dev:key failed: ${sentence}. Is npm start running?`);
  process.exitCode = 1;
}

function readFlags() {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { region: text, org: text, creator: text, scopes: text, expires: text, revoke: text },
  });
  const { region = 'us', org = '', creator, scopes = '', expires, revoke } = values;
  const requested = scopes.split(',').map((scope) => scope.trim());
  const expiresAt = expires === undefined ? null : parseMoment(expires);
  if (revoke !== undefined) return { region, revoke };
  if (creator === undefined || scopes === '') throw new Error('--org, --creator and --scopes are needed, or --revoke.');
  if (!/^[0-9a-f-]{36}$/i.test(org)) throw new Error('--org: give the organization’s id, a UUID.');
  if (expires !== undefined && expiresAt === null)
    throw new Error('--expires: give an ISO 8601 date-time, for example 2027-01-31T00:00:00Z.');
  return { region, revoke, organizationId: org, creatorId: creator, requested, expiresAt };
}

type NewKey = Exclude<ReturnType<typeof readFlags>, { revoke: string }>;

async function create(database: Database, secrets: KeySecrets, flags: NewKey): Promise<string> {
  const { requested, organizationId, creatorId, expiresAt } = flags;
  const scopes = requested.filter(isScope);
  const unknown = requested.filter((scope) => !isScope(scope));
  if (unknown.length > 0)
    throw new InvalidSettingsError([`--scopes: ${unknown.join(', ')} is not a scope; use ${allScopes.join(', ')}`]);
  const input = { organizationId, by: 'orgctl', creatorId, scopes, label: 'dev:key', expiresAt } as const;
  return (await createKey(database, input, secrets)).key;
}

async function revoke(database: Database, secrets: KeySecrets, key: string): Promise<void> {
  const [found] = await database.query(sql<{ keyId: string; organizationId: string }>`
    select id as "keyId", organization_id as "organizationId" from api_key
    where fingerprint = any (${fingerprints(key, secrets.peppers)}::bytea[])`);
  const unknown = 'This stack has no such key; give the whole key, and the region it belongs to.';
  if (found === undefined) throw new KeyError('no_such_key', unknown);
  await revokeKey(database, { ...found, by: 'orgctl' });
  console.error('Revoked; every request from now on is rejected.');
}
