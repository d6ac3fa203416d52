/** How a developer gets into the sample organizations: keys, webhooks, and a link into the console. */
import { sql } from 'kysely';
import { eventTypes } from '#domain/contract/events.ts';
import { scopes } from '#domain/contract/scopes.ts';
import type { Database } from '#domain/db/database.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { IdentityError } from '#domain/identity/errors.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { createKey } from '#domain/keys/create.ts';
import { fingerprints, type KeySecrets } from '#domain/keys/key.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { addressBlocks, webhookSecretKeys } from '#runtime/settings/types.ts';
import type { SampleWebhook, StackOrganization } from './state.ts';

/** The non-public addresses that webhooks of a development stack may reach: this machine's own. */
export const stackAllow = '127.0.0.0/8,::1';

/**
 * Ensures that each organization with an active owner has a sample key with all seven scopes, which
 * acts for the owner. A key that still works stays. The audit log names the operator, because
 * the owner may never have signed in.
 */
export async function ensureSampleKeys(
  database: Database,
  secrets: KeySecrets,
  organizations: StackOrganization[],
): Promise<StackOrganization[]> {
  const withKeys: StackOrganization[] = [];
  for (const organization of organizations) {
    const { id: organizationId, ownerUserId: creatorId, sampleKey: known } = organization;
    const knownFingerprints = known === null ? [] : fingerprints(known, secrets.peppers);
    const live = await database.query(sql`
      select from api_key k where k.fingerprint = any (${knownFingerprints}::bytea[]) and k.revoked_at is null
        and k.creator_left_at is null and (k.expires_at is null or k.expires_at > now())`);
    let sampleKey = live.length === 0 ? null : known;
    if (sampleKey === null && creatorId !== null) {
      const input = { organizationId, creatorId, scopes, label: 'npm start', expiresAt: null, byOrgctl: true };
      sampleKey = (await createKey(database, input, secrets)).key;
    }
    withKeys.push({ ...organization, sampleKey });
  }
  return withKeys;
}

/**
 * Subscribes the sample receiver to every event of each organization without such a webhook. The
 * path of the URL is the organization's id. Returns all webhooks, older ones first.
 */
export async function ensureSampleWebhooks(
  database: Database,
  options: {
    receiverUrl: string;
    sealingKeys: string;
    organizations: readonly StackOrganization[];
    known: readonly SampleWebhook[];
  },
): Promise<SampleWebhook[]> {
  const { receiverUrl, organizations, known } = options;
  const sealingKeys = webhookSecretKeys.parse(options.sealingKeys);
  const settings = { allow: addressBlocks.parse(stackAllow), sealingKeys };
  // The receiver's port may have changed since the last start.
  const current = sql`${receiverUrl}::text || '/hooks/' || organization_id`;
  await database.query(sql`
    update webhook set url = ${current}
    where id = any (${known.map(({ webhookId }) => webhookId)}::uuid[]) and url <> ${current} and state <> 'deleted'`);
  const all = [...known];
  for (const { id: organizationId } of organizations) {
    if (known.some((webhook) => webhook.organizationId === organizationId)) continue;
    const url = `${receiverUrl}/hooks/${organizationId}`;
    const input = { organizationId, by: 'orgctl', url, eventTypes, description: 'Sample receiver' } as const;
    const { id: webhookId, secret } = await createWebhook(database, input, settings);
    all.push({ organizationId, webhookId, secret });
  }
  return all;
}

/**
 * Starts a client's first grant, so that a first event is delivered: a new family gives an active
 * member access. The database creates the event.
 */
export async function causeFirstEvent(database: Database, organizationId: string): Promise<void> {
  await database.query(sql`
    with professional as (
      select organization_id, person_id from membership
      where organization_id = ${organizationId} and status = 'active' order by person_id limit 1
    ), made as (
      insert into family (organization_id, id, name)
      select p.organization_id, new_id(), 'First event family' from professional p returning id
    )
    insert into client_grant (organization_id, kind, professional_id, family_id, since)
    select p.organization_id, 'attorney', p.person_id, m.id, now() from professional p, made m`);
}

/**
 * How the owner of the first sample organization enters the console: by a link, or by signing in
 * (`link` is null) when one was used before.
 */
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
