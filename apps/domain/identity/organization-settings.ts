import { sql } from 'kysely';
import { getActor } from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { OrganizationError } from '../access/errors.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { canonicalEmail, findEmailProblem, isMailable, notMailableReason } from '../contract/email.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';

/** The most characters of a display name, and the most domains of invitations. */
export const displayNameMaxCharacters = 200;
export const invitationDomainsAtMost = 20;
/** How long a session may last that an organization is open to, in hours. */
export const sessionHoursRange = { min: 1, max: 12 } as const;

/** What an organization's owners set for its console. */
export interface OrganizationSettings {
  /** What its members read instead of the platform's name; null: that name. */
  displayName: string | null;
  /** The zone of times in the console and in CSV files; null: the viewer's, and UTC in files. */
  timeZone: string | null;
  /** The address for matters of security, in canonical form. */
  securityContact: string | null;
  /** Domains of addresses that may be invited, in ASCII; none: every address may. */
  invitationDomains: readonly string[];
  /** Whether a member needs a passkey before the console opens the organization. */
  passkeysRequired: boolean;
  /** When a session ends in which the organization is open, in hours after the second factor. */
  sessionHours: number;
}

const nothingSet: OrganizationSettings = {
  displayName: null,
  timeZone: null,
  securityContact: null,
  invitationDomains: [],
  passkeysRequired: false,
  sessionHours: sessionHoursRange.max,
};

/** Returns the settings of an organization. */
export async function getSettings(db: Queryable, organizationId: string): Promise<OrganizationSettings> {
  const [row] = await db.query(sql<OrganizationSettings>`
    select s.display_name as "displayName", s.time_zone as "timeZone", s.security_contact as "securityContact",
      s.invitation_domains as "invitationDomains", s.passkeys_required as "passkeysRequired",
      s.session_hours as "sessionHours"
    from organization_setting s where s.organization_id = ${organizationId}`);
  return row ?? nothingSet;
}

/**
 * Changes the settings of an organization, in one transaction with the audit entry, which has the old
 * and the new value of each that differs. Settings that are the same already are not recorded.
 *
 * @throws OrganizationError `may_not_manage_members`, `only_owners`; `field_invalid` with what is
 * wrong; `passkey_first` for an owner who requires passkeys and has none.
 */
export async function changeSettings(
  database: Database,
  { organizationId, by, ...given }: OrganizationSettings & { organizationId: string; by: Authority },
): Promise<void> {
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.members.manage');
    if (!actor.isOwner) throw new OrganizationError('only_owners', 'Only an owner can change the settings.');
    const before = await getSettings(tx, organizationId);
    const after = readSettings(given);
    const changes = listChanges(before, after);
    if (changes.length === 0) return;
    if (after.passkeysRequired && !before.passkeysRequired) await assertHasPasskey(tx, actor.personId);
    const { displayName, timeZone, securityContact, invitationDomains, passkeysRequired, sessionHours } = after;
    await tx.query(sql`
      insert into organization_setting (organization_id, display_name, time_zone, security_contact, invitation_domains,
        passkeys_required, session_hours)
      values (${organizationId}, ${displayName}, ${timeZone}, ${securityContact}, ${[...invitationDomains]}::text[],
        ${passkeysRequired}, ${sessionHours})
      on conflict (organization_id) do update set display_name = excluded.display_name,
        time_zone = excluded.time_zone, security_contact = excluded.security_contact,
        invitation_domains = excluded.invitation_domains, passkeys_required = excluded.passkeys_required,
        session_hours = excluded.session_hours`);
    const detail = { changed: changes.map(([name]) => name), ...Object.fromEntries(changes) };
    await recordAuditEntry(tx, { organizationId, by, action: 'organization.change', detail });
  });
}

/** A setting with its old and its new value. */
type Change = [name: string, values: { from: unknown; to: unknown }];

function listChanges(before: OrganizationSettings, after: OrganizationSettings): Change[] {
  const names = Object.keys(nothingSet) as (keyof OrganizationSettings)[];
  return names
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => [name, { from: before[name], to: after[name] }]);
}

/** Returns settings as they are stored. @throws OrganizationError `field_invalid` */
function readSettings(given: OrganizationSettings): OrganizationSettings {
  const { displayName, timeZone, securityContact, invitationDomains, passkeysRequired, sessionHours } = given;
  const problem =
    (displayName !== null && displayName.length > displayNameMaxCharacters
      ? `Enter a name of at most ${displayNameMaxCharacters} characters.`
      : null) ??
    findTimeZoneProblem(timeZone) ??
    (securityContact === null ? null : findContactProblem(securityContact)) ??
    findDomainsProblem(invitationDomains) ??
    (Number.isInteger(sessionHours) && sessionHours >= sessionHoursRange.min && sessionHours <= sessionHoursRange.max
      ? null
      : `Enter ${sessionHoursRange.min} to ${sessionHoursRange.max} hours.`);
  if (problem !== null) throw new OrganizationError('field_invalid', problem);
  return {
    displayName: displayName === '' ? null : displayName,
    timeZone,
    securityContact: securityContact === null ? null : canonicalEmail(securityContact),
    invitationDomains: [...new Set(invitationDomains.map(canonicalDomain))].sort(),
    passkeysRequired,
    sessionHours,
  };
}

const timeZones: ReadonlySet<string> = new Set(Intl.supportedValuesOf('timeZone'));

/** The names of zones that an organization may choose, in alphabetical order. */
export const timeZoneNames: readonly string[] = [...new Set([...timeZones, 'UTC'])].sort();

const findTimeZoneProblem = (name: string | null): string | null =>
  name === null || timeZoneNames.includes(name) ? null : 'Choose a time zone from the list.';

/** Returns what is wrong with a contact's address, as a sentence; null when it is accepted. */
export function findContactProblem(address: string): string | null {
  const problem = findEmailProblem(address);
  if (problem !== null) return `Enter ${problem}.`;
  return isMailable(canonicalEmail(address)) ? null : `Enter another address. This one ${notMailableReason}.`;
}

/** Returns what is wrong with a list of domains, as a sentence; null when it is accepted. */
export function findDomainsProblem(domains: readonly string[]): string | null {
  const wrong = domains.find((domain) => domain.includes('@') || findEmailProblem(`name@${domain}`) !== null);
  if (wrong !== undefined)
    return `Enter domains such as example.org, without “@”. “${wrong.slice(0, 50)}” is not a domain.`;
  const distinct = new Set(domains.map(canonicalDomain)).size;
  if (distinct <= invitationDomainsAtMost) return null;
  return `Enter at most ${invitationDomainsAtMost} domains. These are ${distinct}.`;
}

const canonicalDomain = (domain: string): string => canonicalEmail(`name@${domain}`).slice('name@'.length);

/** @throws OrganizationError `passkey_first`; an operator needs none. */
async function assertHasPasskey(tx: Transaction, personId: string | null): Promise<void> {
  if (personId === null) return;
  const [passkey] = await tx.query(sql`
    select from second_factor f where f.person_id = ${personId} and f.kind = 'passkey' limit 1`);
  if (passkey === undefined)
    throw new OrganizationError('passkey_first', 'Add a passkey to your account before you require one of others.');
}

/**
 * Rejects an invitation of an address outside the domains that the organization allows, also one by
 * an operator. A domain does not include its subdomains. `isLinkValid` asks again when the link is used.
 *
 * @throws OrganizationError `domain_not_allowed`
 */
export async function assertMayInvite(tx: Queryable, organizationId: string, email: string): Promise<void> {
  const { invitationDomains } = await getSettings(tx, organizationId);
  const domain = email.slice(email.lastIndexOf('@') + 1);
  if (invitationDomains.length === 0 || invitationDomains.includes(domain)) return;
  throw new OrganizationError(
    'domain_not_allowed',
    `The organization invites only addresses at ${invitationDomains.join(', ')}. An owner can change this in Settings.`,
  );
}
