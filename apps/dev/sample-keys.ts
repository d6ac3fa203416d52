import { scopes } from '#domain/contract/scopes.ts';
import { openDatabase } from '#domain/db/connect.ts';
import { createKey } from '#domain/keys/create.ts';
import type { KeySecrets } from '#domain/keys/fingerprint.ts';
import { fingerprint } from '#domain/keys/fingerprint.ts';
import type { StackOrganization } from './state.ts';

/**
 * Ensures that each organization with an active owner has a sample key with all seven scopes, which
 * acts for the owner. A key that still works stays. Organizations without an active owner have none
 * (null). The activity log names the operator, because the owner may never have signed in.
 */
export async function ensureSampleKeys(
  ownerUrl: string,
  secrets: KeySecrets,
  organizations: StackOrganization[],
): Promise<StackOrganization[]> {
  const database = await openDatabase({ url: ownerUrl, applicationName: 'org-api-dev', poolMax: 2 });
  try {
    const withKeys: StackOrganization[] = [];
    for (const organization of organizations) {
      const kept = organization.sampleKey !== null && (await isLive(organization.sampleKey));
      const sampleKey = kept ? organization.sampleKey : await makeSampleKey(organization);
      withKeys.push({ ...organization, sampleKey });
    }
    return withKeys;
  } finally {
    await database.close();
  }

  async function isLive(key: string): Promise<boolean> {
    const { rows } = await database.pool.query(
      'select from api_key k where k.fingerprint = any ($1) and k.revoked_at is null and ' +
        'k.maker_left_at is null and (k.expires_at is null or k.expires_at > now())',
      [secrets.peppers.map((pepper) => fingerprint(key, pepper))],
    );
    return rows.length > 0;
  }

  async function makeSampleKey({ id, ownerUserId }: StackOrganization): Promise<string | null> {
    if (ownerUserId === null) return null;
    const input = {
      organizationId: id,
      makerId: ownerUserId,
      scopes,
      label: 'npm start',
      expiresAt: null,
      byOperator: true,
    };
    return (await createKey(database.orm.em, input, secrets)).key;
  }
}
