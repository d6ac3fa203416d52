/** How a developer gets into the sample organizations: keys, webhooks, and a link into the console. */
import { sql } from 'kysely';
import { changeTypes } from '#domain/contract/events.ts';
import type { Region } from '#domain/contract/regions.ts';
import { scopes } from '#domain/contract/scopes.ts';
import type { Database } from '#domain/db/database.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { IdentityError } from '#domain/identity/errors.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { createKey } from '#domain/keys/create.ts';
import { fingerprints } from '#domain/keys/key.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { addressBlocks, keyPeppers, keyTagSecrets, webhookSecretKeys } from '#runtime/settings/types.ts';
import type { RegionMemory, StackOrganization } from './state.ts';

/** The non-public addresses that webhooks of a development stack may reach: this machine's own. */
export const stackAllow = '127.0.0.0/8,::1';

/**
 * Ensures that each organization with an active owner has a sample key with all seven scopes, which
 * acts for the owner. A key that still works stays. The audit log names the operator, because
 * the owner may never have signed in.
 */
export async function ensureSampleKeys(
  database: Database,
  region: Region,
  memory: RegionMemory,
): Promise<RegionMemory> {
  const peppers = keyPeppers.parse(memory.keyPeppers);
  const secrets = { region, peppers, tagSecrets: keyTagSecrets.parse(memory.keyTagSecrets) };
  const organizations: StackOrganization[] = [];
  for (const organization of memory.organizations) {
    const { id: organizationId, ownerUserId: creatorId, sampleKey: known } = organization;
    const knownFingerprints = known === null ? [] : fingerprints(known, peppers);
    const validKeys = await database.query(sql`
      select from api_key k where k.fingerprint = any (${knownFingerprints}::bytea[]) and k.revoked_at is null
        and k.creator_left_at is null and (k.expires_at is null or k.expires_at > now())`);
    let sampleKey = validKeys.length === 0 ? null : known;
    if (sampleKey === null && creatorId !== null) {
      const input = { organizationId, by: 'orgctl', creatorId, scopes, label: 'npm start', expiresAt: null } as const;
      sampleKey = (await createKey(database, input, secrets)).key;
    }
    organizations.push({ ...organization, sampleKey });
  }
  return { ...memory, organizations };
}

/**
 * Subscribes the sample receiver to every event of each organization without such a webhook. The
 * path of the URL is the organization's id.
 */
export async function ensureSampleWebhooks(
  database: Database,
  receiverUrl: string,
  memory: RegionMemory,
): Promise<RegionMemory> {
  const sealingKeys = webhookSecretKeys.parse(memory.webhookSecretKeys);
  const settings = { allow: addressBlocks.parse(stackAllow), sealingKeys };
  // The receiver's port may have changed since the last start.
  const current = sql`${receiverUrl}::text || '/hooks/' || organization_id`;
  await database.query(sql`
    update webhook set url = ${current}
    where id = any (${memory.webhooks.map(({ webhookId }) => webhookId)}::uuid[]) and url <> ${current}
      and state <> 'deleted'`);
  const webhooks = [...memory.webhooks];
  for (const { id: organizationId } of memory.organizations) {
    if (webhooks.some((webhook) => webhook.organizationId === organizationId)) continue;
    const url = `${receiverUrl}/hooks/${organizationId}`;
    const input = {
      organizationId,
      by: 'orgctl',
      url,
      eventTypes: changeTypes,
      description: 'Sample receiver',
    } as const;
    const { id: webhookId, secret } = await createWebhook(database, input, settings);
    webhooks.push({ organizationId, webhookId, secret });
  }
  return { ...memory, webhooks };
}

/** How an owner enters the console: by a link, or by signing in (`link` is null). */
export type SampleOwner = NonNullable<Awaited<ReturnType<typeof createOwnerLink>>>;

/**
 * Creates an enrolment link for the owner of the first organization that has one, which voids older
 * links; null without one. An owner who can already sign in gets no link, because an operator's
 * link would replace their password.
 */
export async function createOwnerLink(
  database: Database,
  consoleUrl: string,
  organizations: readonly StackOrganization[],
) {
  const organization = organizations.find(({ ownerUserId }) => ownerUserId !== null);
  if (organization === undefined) return null;
  const { id: organizationId, name: organizationName, ownerUserId } = organization;
  const [found] = await database.query(sql<{ email: string; signInEmail: string | null }>`
    select m.email, i.email as "signInEmail" from membership m
    left join sign_in_confirmation c on c.person_id = m.person_id and c.organization_id = m.organization_id
    left join sign_in i on i.person_id = c.person_id
    where m.organization_id = ${organizationId} and m.person_id = ${ownerUserId}`);
  if (found === undefined) return null;
  const { email, signInEmail } = found;
  if (signInEmail !== null) return { organizationName, email: signInEmail, link: null };
  try {
    const { token } = await createEnrolment(database, { organizationId, email, by: 'orgctl' });
    return { organizationName, email, link: enrolmentLink(consoleUrl, token) };
  } catch (error) {
    // Two members of an imported file may have the same address, which then identifies neither.
    if (error instanceof IdentityError) return null;
    throw error;
  }
}
