import { scopes } from '#domain/contract/scopes.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { createKey } from '#domain/keys/create.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import type { Database } from '#domain/open-database.ts';
import { withDatabase } from './databases.ts';
import type { StackOrganization } from './state.ts';

/**
 * Ensures that each organization with an active owner has a sample key with all seven scopes, which
 * acts for the owner. A key that still works stays. The activity log names the operator, because
 * the owner may never have signed in.
 */
export async function ensureSampleKeys(
  owner: PostgresServer,
  secrets: KeySecrets,
  organizations: StackOrganization[],
): Promise<StackOrganization[]> {
  return withDatabase(owner, async (database) => {
    const withKeys: StackOrganization[] = [];
    for (const organization of organizations) {
      const kept = organization.sampleKey !== null && (await isLive(database, secrets, organization.sampleKey));
      const sampleKey = kept ? organization.sampleKey : await createSampleKey(database, secrets, organization);
      withKeys.push({ ...organization, sampleKey });
    }
    return withKeys;
  });
}

async function isLive({ pool }: Database, { peppers }: KeySecrets, key: string): Promise<boolean> {
  const { rows } = await pool.query(
    'select from api_key k where k.fingerprint = any ($1) and k.revoked_at is null and ' +
      'k.creator_left_at is null and (k.expires_at is null or k.expires_at > now())',
    [fingerprints(key, peppers)],
  );
  return rows.length > 0;
}

async function createSampleKey(
  { orm }: Database,
  secrets: KeySecrets,
  { id: organizationId, ownerUserId: creatorId }: StackOrganization,
): Promise<string | null> {
  if (creatorId === null) return null;
  const input = { organizationId, creatorId, scopes, label: 'npm start', expiresAt: null, byOperator: true };
  return (await createKey(orm.em, input, secrets)).key;
}
