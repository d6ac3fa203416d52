import { randomUUIDv7 } from 'node:crypto';
import { sql } from 'kysely';
import { getActor } from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { isConfirmed } from '../access/console-access.ts';
import { OrganizationError } from '../access/errors.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization, writeLock } from '../db/locks.ts';
import { type SealingKeys, seal, unseal } from '../encryption/envelope.ts';
import { IdentityError } from './errors.ts';
import { SsoProvider } from './identity.entity.ts';
import { assertSteppedUp } from './sessions.ts';
import type { Session } from './types.ts';

/** The OpenID provider of an organization. Owners change it with a fresh second factor. */

/** Names a provider's row for the seal of its secret. */
export const providerRow = (id: string): string => `sso_provider ${id}`;

/** A provider as its owners see it. */
export interface ProviderDetails {
  id: string;
  /** The short name of the organization, which members enter to sign in. */
  slug: string;
  issuer: string;
  clientId: string;
  isRequired: boolean;
  /** Active members with an account of it. */
  linkedMembers: number;
  /** Active members without one, who can sign in. */
  otherMembers: number;
}

/** What a program presents to a provider. */
export interface OpenIdClient {
  providerId: string;
  organizationId: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
}

/** Returns the provider of an organization; null when it has none. */
export async function findProvider(db: Queryable, organizationId: string): Promise<ProviderDetails | null> {
  const [row] = await db.query(sql<ProviderDetails>`
    select p.id, o.slug, p.issuer, p.client_id as "clientId", p.is_required as "isRequired",
      m.linked as "linkedMembers", m.active - m.linked as "otherMembers"
    from sso_provider p
    join organization o on o.id = p.organization_id
    cross join lateral (
      select count(*)::int as active, count(s.person_id)::int as linked
      from membership m left join sso_subject s on s.provider_id = p.id and s.person_id = m.person_id
      where m.organization_id = p.organization_id and m.status = 'active' and ${isConfirmed()}
    ) m
    where p.organization_id = ${organizationId}::uuid`);
  return row ?? null;
}

/** Returns what signs the console in to a provider: by the organization's id or short name, or by the provider. */
export async function findOpenIdClient(
  db: Queryable,
  by: { organizationId: string } | { slug: string } | { providerId: string },
  sealingKeys: SealingKeys,
): Promise<OpenIdClient | null> {
  const where =
    'slug' in by
      ? sql`o.slug = ${by.slug}`
      : 'providerId' in by
        ? sql`p.id = ${by.providerId}::uuid`
        : sql`o.id = ${by.organizationId}::uuid`;
  const [row] = await db.query(sql<Omit<OpenIdClient, 'clientSecret'> & { sealed: Buffer }>`
    select p.id as "providerId", o.id as "organizationId", p.issuer, p.client_id as "clientId",
      p.secret_sealed as "sealed"
    from sso_provider p join organization o on o.id = p.organization_id where ${where}`);
  if (row === undefined) return null;
  const { sealed, ...client } = row;
  return { ...client, clientSecret: unseal(sealed, providerRow(client.providerId), sealingKeys) };
}

interface OwnersChange {
  organizationId: string;
  by: Exclude<Authority, 'orgctl'>;
  session: Session;
}

/**
 * Returns the one form of an issuer in which it is stored: that of the URL standard, without the slash of an empty
 * path.
 */
export function canonicalIssuer(issuer: string): string {
  const { origin, pathname } = new URL(issuer);
  return pathname === '/' ? origin : origin + pathname;
}

/** Whether two issuers are the same provider: the same URL, whatever their letter case and last slash are. */
const isSameIssuer = (one: string, other: string): boolean =>
  canonicalIssuer(one).replace(/\/+$/, '') === canonicalIssuer(other).replace(/\/+$/, '');

/** What ends with a provider. */
interface Ended {
  accounts: number;
  sessions: number;
}

/**
 * Sets the provider of an organization. With another issuer or client it is another provider: the accounts that were
 * linked to the old one and the sessions that began there end, and it is not required until a session of it says so.
 *
 * @param chosen - `mayReplace`: whether the owner knows that; otherwise nothing that is in use is replaced.
 * @throws OrganizationError `only_owners`, `may_not_manage_members`; IdentityError `step_up_needed`,
 * `provider_differs`
 */
export async function setProvider(
  database: Database,
  {
    organizationId,
    by,
    session,
    ...chosen
  }: OwnersChange & { issuer: string; clientId: string; clientSecret: string; mayReplace: boolean },
  sealingKeys: SealingKeys,
  now: () => Date = () => new Date(),
): Promise<void> {
  const { clientId, clientSecret, mayReplace } = chosen;
  const issuer = canonicalIssuer(chosen.issuer);
  await changeAsOwner(database, { organizationId, by, session }, now(), async (tx, old) => {
    const isSame = old !== null && isSameIssuer(old.issuer, issuer) && old.clientId === clientId;
    const ended = old === null || isSame ? null : await countWhatEnds(tx, old.id, now());
    if (old !== null && ended !== null && !mayReplace) assertEndsNothing(old, ended);
    const to = { issuer, clientId, isRequired: isSame && old.isRequired };
    const detail = { from: describe(old), to, secretChanged: true, ...(ended !== null && { ended }) };
    await recordAuditEntry(tx, { organizationId, by, action: 'sso.set', detail });
    if (isSame) {
      old.issuer = issuer;
      old.secretSealed = seal(clientSecret, providerRow(old.id), sealingKeys);
      return tx.flush();
    }
    if (old !== null) await tx.nativeDelete(SsoProvider, { id: old.id });
    const id = randomUUIDv7();
    const secretSealed = seal(clientSecret, providerRow(id), sealingKeys);
    const provider = { id, organizationId, issuer, clientId, secretSealed, isRequired: false, createdAt: now() };
    await tx.insert(SsoProvider, provider);
  });
}

/** Describes a provider for the audit log. */
const describe = (provider: SsoProvider | null) =>
  provider === null ? null : { issuer: provider.issuer, clientId: provider.clientId, isRequired: provider.isRequired };

async function countWhatEnds(tx: Transaction, providerId: string, at: Date): Promise<Ended> {
  const [ended] = await tx.query(sql<Ended>`
    select (select count(*)::int from sso_subject s where s.provider_id = ${providerId}::uuid) as accounts,
      (select count(*)::int from console_session s where s.provider_id = ${providerId}::uuid
        and s.expires_at > ${at.toISOString()}::timestamptz) as sessions`);
  return ended ?? { accounts: 0, sessions: 0 };
}

/** @throws IdentityError `provider_differs` */
function assertEndsNothing({ issuer, isRequired }: SsoProvider, { accounts, sessions }: Ended): void {
  if (accounts === 0 && sessions === 0 && !isRequired) return;
  throw new IdentityError(
    'provider_differs',
    `This is another provider than the one at ${issuer}. Saving it unlinks ${count(accounts, 'account')} and ends ` +
      `${count(sessions, 'session')}${isRequired ? ', and passwords are accepted again' : ''}. Select this box to ` +
      'confirm, and enter the client secret again.',
  );
}

const count = (many: number, what: string): string => `${many} ${what}${many === 1 ? '' : 's'}`;

/**
 * Switches on or off that members sign in with the provider. On only from a session that began there: that proves that
 * it works, and that its owner can still enter.
 *
 * @throws IdentityError `no_such_provider`, `provider_session_needed` and as above
 */
export async function setProviderRequired(
  database: Database,
  { isRequired, ...change }: OwnersChange & { isRequired: boolean },
  now: () => Date = () => new Date(),
): Promise<void> {
  const { organizationId, by, session } = change;
  await changeAsOwner(database, change, now(), async (tx, provider) => {
    if (provider === null) throw noSuchProvider();
    if (isRequired && session.providerId !== provider.id)
      throw new IdentityError(
        'provider_session_needed',
        'Sign in with the provider first. That shows that it works, and that you can still sign in afterwards.',
      );
    await writeRequired(tx, provider, isRequired, { organizationId, by });
  });
}

/**
 * Removes the provider, its linked accounts and the sessions that began there.
 *
 * @throws IdentityError `no_such_provider` and as above
 */
export async function removeProvider(
  database: Database,
  change: OwnersChange,
  now: () => Date = () => new Date(),
): Promise<void> {
  const { organizationId, by } = change;
  await changeAsOwner(database, change, now(), async (tx, provider) => {
    if (provider === null) throw noSuchProvider();
    const detail = { from: describe(provider), ended: await countWhatEnds(tx, provider.id, now()) };
    // Before the session of who removes it ends with it: the log accepts entries of people with a session.
    await recordAuditEntry(tx, { organizationId, by, action: 'sso.remove', detail });
    await tx.nativeDelete(SsoProvider, { id: provider.id });
  });
}

/**
 * Lets members sign in with a password again: the way back for an operator when no owner can sign in.
 *
 * @throws IdentityError `no_such_provider`
 */
export async function stopRequiringProvider(database: Database, organizationId: string): Promise<{ changed: boolean }> {
  return database.change(async (tx) => {
    const provider = await tx.findOne(SsoProvider, { organizationId }, writeLock);
    if (provider === null) throw noSuchProvider();
    return { changed: await writeRequired(tx, provider, false, { organizationId, by: 'orgctl' }) };
  });
}

/** Runs a change of an owner under the organization's lock. The provider is null when there is none. */
async function changeAsOwner(
  database: Database,
  { organizationId, by, session }: OwnersChange,
  now: Date,
  change: (tx: Transaction, provider: SsoProvider | null) => Promise<void>,
): Promise<void> {
  assertSteppedUp(session, now);
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.members.manage');
    if (!actor.isOwner) throw new OrganizationError('only_owners', 'Only an owner can change how members sign in.');
    await change(tx, await tx.findOne(SsoProvider, { organizationId }, writeLock));
  });
}

async function writeRequired(
  tx: Transaction,
  provider: SsoProvider,
  isRequired: boolean,
  { organizationId, by }: { organizationId: string; by: Authority },
): Promise<boolean> {
  if (provider.isRequired === isRequired) return false;
  const detail = { from: provider.isRequired, to: isRequired };
  provider.isRequired = isRequired;
  await tx.flush();
  await recordAuditEntry(tx, { organizationId, by, action: 'sso.require', detail });
  return true;
}

const noSuchProvider = () =>
  new IdentityError('no_such_provider', 'This organization has no sign-in provider. It may have been removed.');
