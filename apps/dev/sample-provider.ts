/** The sample OpenID provider in a region's data: its row, and a member who signs in with it. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { generateSync } from 'otplib';
import { recordAuditEntry } from '#domain/audit-log/record.ts';
import { DomainError } from '#domain/contract/domain-error.ts';
import type { Region } from '#domain/contract/regions.ts';
import type { Database } from '#domain/db/database.ts';
import { seal } from '#domain/encryption/envelope.ts';
import { completeEnrolment, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { endSessions } from '#domain/identity/sessions.ts';
import { providerRow } from '#domain/identity/sso-provider.ts';
import { chooseAccount } from '#domain/identity/sso-sign-in.ts';
import { hashToken } from '#domain/identity/token.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import type { RegionMemory } from './state.ts';

/** A console, as the sample provider knows it. */
export interface SampleClient {
  clientId: string;
  clientSecret: string;
  redirectUri: string;
}

/** How an organization's console is a client of the sample provider, and how its member signs in. */
export interface SampleProvider extends SampleClient {
  issuer: string;
  organizationId: string;
  organizationName: string;
  /** What a person enters at `signInUrl`. */
  shortName: string;
  signInUrl: string;
  /** Null when an owner has removed the provider or the member's account. */
  memberName: string | null;
  totpSecret: string;
}

interface Where {
  region: Region;
  issuer: string;
  consoleUrl: string;
}

/** The account of the linked member at the provider. */
export const linkedAccount = 'sample-member';

/** The name of a region's console at the provider, by which its row is known too. */
const getClientId = (region: Region) => `npm-start-${region}`;

/**
 * Gives the first organization with an owner the sample provider, and links one of its other members, once: what
 * people change or remove later stays so. Follows a new port of the provider.
 */
export async function ensureSampleProvider(
  database: Database,
  { region, issuer, consoleUrl }: Where,
  memory: RegionMemory,
): Promise<RegionMemory> {
  const clientId = getClientId(region);
  await database.query(sql`
    update sso_provider set issuer = ${issuer} where client_id = ${clientId} and issuer <> ${issuer}`);
  const organization = memory.organizations.find(({ ownerUserId }) => ownerUserId !== null);
  if (memory.linkedMember !== null || organization === undefined) return memory;
  const { id: organizationId } = organization;
  const member = await findUnlinkedMember(database, organizationId);
  if (member === null) return memory;
  const [other] = await database.query(sql`
    select from sso_provider p where p.organization_id = ${organizationId}::uuid and p.client_id <> ${clientId}`);
  if (other !== undefined) return memory;
  const linked = { issuer, clientId, consoleUrl, organizationId, ...member };
  try {
    return { ...memory, linkedMember: await linkMember(database, linked, memory) };
  } catch (error) {
    // Of an imported file, whose addresses may be none that sign in.
    if (error instanceof DomainError) return memory;
    throw error;
  }
}

/** Stores the provider, and signs a member up as a person does with a link: an account there, then an app. */
async function linkMember(
  database: Database,
  linked: { issuer: string; clientId: string; consoleUrl: string; organizationId: string } & UnlinkedMember,
  memory: RegionMemory,
): Promise<RegionMemory['linkedMember']> {
  const { issuer, clientId, consoleUrl, organizationId, personId, email } = linked;
  const sealingKeys = webhookSecretKeys.parse(memory.webhookSecretKeys);
  const providerId = randomUUID();
  await database.change(async (tx) => {
    // Of a start that was killed before the stack remembered it.
    await tx.query(sql`delete from sso_provider p where p.organization_id = ${organizationId}::uuid`);
    const sealed = seal(memory.providerSecret, providerRow(providerId), sealingKeys);
    await tx.query(sql`
      insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
      values (${providerId}::uuid, ${organizationId}::uuid, ${issuer}, ${clientId}, ${sealed}, false, now())`);
    const detail = { from: null, to: { issuer, clientId }, secretChanged: true };
    await recordAuditEntry(tx, { organizationId, by: 'orgctl', action: 'sso.set', detail });
  });
  const { token } = await createEnrolment(database, { organizationId, email, by: 'orgctl' });
  await chooseAccount(database, { providerId, subject: linkedAccount, linkHash: hashToken(token) });
  const settings = { sealingKeys, relyingParty: { id: 'localhost', name: 'org-api console', origin: consoleUrl } };
  const { secret: totpSecret } = await startEnrolmentTotp(database, token, settings);
  // Of the step before, so that the code of this one is not used up.
  const code = generateSync({ secret: totpSecret, epoch: Math.floor(Date.now() / 1000) - 30 });
  const visitor = { address: null, userAgent: 'npm start' };
  await completeEnrolment(database, { token, factor: { kind: 'totp', code }, visitor }, settings);
  await database.change((tx) => endSessions(tx, personId));
  return { organizationId, personId, totpSecret };
}

/** Returns how to set up the sample provider and sign in with it; null when no organization got it. */
export async function findSampleProvider(
  database: Database,
  { region, issuer, consoleUrl }: Where,
  { linkedMember, providerSecret }: RegionMemory,
): Promise<SampleProvider | null> {
  if (linkedMember === null) return null;
  const { organizationId, personId, totpSecret } = linkedMember;
  const clientId = getClientId(region);
  const [found] = await database.query(sql<Pick<SampleProvider, 'organizationName' | 'shortName' | 'memberName'>>`
    select o.name as "organizationName", o.slug as "shortName", (
      select m.name from sso_provider p
      join sso_subject s on s.provider_id = p.id and s.subject = ${linkedAccount} and s.person_id = ${personId}
      join membership m on m.organization_id = p.organization_id and m.person_id = s.person_id
      where p.organization_id = o.id and p.client_id = ${clientId}) as "memberName"
    from organization o where o.id = ${organizationId}::uuid`);
  if (found === undefined) return null;
  return {
    ...found,
    issuer,
    organizationId,
    totpSecret,
    clientId,
    clientSecret: providerSecret,
    redirectUri: `${consoleUrl}/sign-in/callback/${organizationId}`,
    signInUrl: `${consoleUrl}/sign-in/organization?organization=${encodeURIComponent(found.shortName)}`,
  };
}

interface UnlinkedMember {
  personId: string;
  email: string;
}

/** Finds an active member who is no owner and cannot sign in yet, administrators first. */
async function findUnlinkedMember(database: Database, organizationId: string): Promise<UnlinkedMember | null> {
  const [member] = await database.query(sql<UnlinkedMember>`
    select m.person_id as "personId", m.email from membership m
    where m.organization_id = ${organizationId}::uuid and m.status = 'active'
      and not exists (select from sign_in i where i.person_id = m.person_id or i.email = m.email)
      and not exists (select from membership_role mr join role r on r.id = mr.role_id
        where mr.organization_id = m.organization_id and mr.person_id = m.person_id and r.key = 'owner')
    order by exists (select from membership_role mr join role r on r.id = mr.role_id
      where mr.organization_id = m.organization_id and mr.person_id = m.person_id and r.key = 'admin') desc, m.person_id
    limit 1`);
  return member ?? null;
}
