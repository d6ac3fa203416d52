import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import {
  type Actor,
  assertHasPermissions,
  assertMayChange,
  getActor,
  getMember,
  type MemberAccess,
  memberColumns,
} from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { consoleAccess, isConfirmed } from '../access/console-access.ts';
import {
  type MemberChanges,
  Membership,
  MembershipRole,
  Organization,
  Person,
  Role,
} from '../access/membership.entity.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { hourMs } from '../contract/durations.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization, writeLock } from '../db/locks.ts';
import { withDates } from '../db/statement.ts';
import type { SealingKeys } from '../encryption/envelope.ts';
import { assertEmail } from './email.ts';
import { AlreadyMemberError, IdentityError } from './errors.ts';
import { Enrolment } from './identity.entity.ts';
import { enrolmentHours, recoveryHours } from './limits.ts';
import { isLinkValid } from './link-validity.ts';
import { writeInvitation } from './mail-invitation.ts';
import { assertMayInvite } from './organization-settings.ts';
import { findTokenHash, generateToken, hashToken } from './token.ts';
import type { EnrolmentKind } from './types.ts';

/**
 * One-time links, by which people enrol and join further organizations. A mail takes an invitation to
 * its person; without a mail server, the creator of the link hands it over, as of every other link.
 *
 * The holder of a link can become its person, so creating one requires what its creator could do
 * anyway: all permissions of the member's roles, and an owner for an owner. A person who can
 * already sign in keeps password and factors, and confirms with them that they are this member. The
 * link opens no other organization. Only an operator can let a person in again who
 * has lost password or factors (`recover`). `isLinkValid` checks all of it again when the link is
 * used.
 *
 * Nothing that an inviter gets says whether the address signs in here, or is of a member of another
 * organization: neither the outcome, nor the link's pages, nor the audit log. Only the id of the person
 * may: one who signs in keeps the id that they have elsewhere.
 */

interface CreateEnrolment {
  organizationId: string;
  /** Of a new person, of one who had left, or for a new link of one who is a member. */
  email: string;
  /**
   * The name in the organization. When it is absent, a new person gets the part of the address
   * before the `@`, and one who had left keeps theirs. The same applies to the title.
   */
  name?: string;
  title?: string | null;
  /** Keys of the roles to assign. Absent: `member`. */
  roleKeys?: readonly string[];
  by: Authority;
  mailKeys?: MailKeys;
}

/** The keys that seal a link's token for the mail that takes it to its person. Null: none is sent. */
type MailKeys = SealingKeys | null;

/** `token` is part of the link; show it once. */
export interface CreatedEnrolment {
  token: string;
  expiresAt: Date;
  personId: string;
  kind: EnrolmentKind;
}

interface Invitee {
  personId: string;
  /** Null: not a member yet. */
  member: MemberAccess | null;
  /** Whether they joined by one of the organization's links. */
  isOpen: boolean;
}

/**
 * Invites a person by their address, with a one-time link that is valid for 72 hours. A new member,
 * and one who had left (`wasMember`), is `invited` until the link is used. Nothing of a present member
 * changes: without `name` and roles, one who is invited gets a new link, and an operator gets any.
 *
 * @throws OrganizationError `may_not_manage_members`, `not_held`, `only_owners`, `domain_not_allowed`;
 * AlreadyMemberError; IdentityError `email_malformed`, `email_taken`, `email_ambiguous`,
 * `no_such_organization`, `no_such_role`, `member_suspended`, `email_not_mailable`, `too_many_invitations`.
 */
export async function createEnrolment(
  database: Database,
  input: CreateEnrolment,
  now: () => Date = () => new Date(),
): Promise<CreatedEnrolment & { wasMember: boolean }> {
  const { organizationId, by, mailKeys = null } = input;
  const email = assertEmail(input.email);
  return database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    if ((await tx.count(Organization, { id: organizationId })) === 0)
      throw new IdentityError('no_such_organization', 'The organization does not exist.');
    const actor = await getActor(tx, organizationId, by, 'org.members.manage');
    const { personId, member, isOpen } = await findInvitee(tx, { organizationId, email, by });
    if (member !== null && member.status !== 'left') {
      const isRequested = input.name !== undefined || input.roleKeys !== undefined;
      if (isRequested || (by !== 'orgctl' && member.status !== 'invited')) throw new AlreadyMemberError(member);
      const link = await linkMember(tx, { organizationId, by, actor, member, isOpen, email, mailKeys }, now());
      return { ...link, wasMember: true };
    }
    const roles = await getRoles(tx, organizationId, input.roleKeys ?? ['member']);
    assertMayAssign(actor, roles);
    const renamed = await writeMember(tx, { ...input, email }, { personId, member }, roles);
    const link = { organizationId, personId, kind: 'invite', email, invitedBy: actor.personId, mailKeys } as const;
    const created = await writeLink(tx, link, now());
    const detail = { memberId: personId, roleKeys: roles.map(({ key }) => key), ...renamed };
    await recordAuditEntry(tx, { organizationId, by, action: 'member.invite', detail });
    return { ...created, personId, kind: link.kind, wasMember: member !== null };
  });
}

/**
 * Creates a link for a present member, and changes nothing else of them. It opens what their roles
 * give, so its creator has all of it. Recorded as an action of its own.
 *
 * @throws OrganizationError `may_not_manage_members`, `no_such_member`, `not_held`, `only_owners`,
 * `domain_not_allowed`; IdentityError `email_ambiguous`, `email_malformed`, `member_suspended`,
 * `operator_needed`, `email_not_mailable`, `too_many_invitations`.
 */
export async function createLink(
  database: Database,
  request: { organizationId: string; personId: string; by: Authority; mailKeys?: MailKeys },
  now: () => Date = () => new Date(),
): Promise<CreatedEnrolment> {
  const { organizationId, personId, by, mailKeys = null } = request;
  return database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.members.manage');
    const member = await getMember(tx, organizationId, personId);
    const [found] = await tx.query(sql<{ isOpen: boolean; isAmbiguous: boolean }>`
      select coalesce(${consoleAccess()} = 'open', false) as "isOpen", exists (select from membership other
        where other.organization_id = m.organization_id and other.person_id <> m.person_id and other.status <> 'left'
          and other.email = m.email) as "isAmbiguous"
      from membership m where m.organization_id = ${organizationId} and m.person_id = ${personId}`);
    if (found?.isAmbiguous) throw emailAmbiguous();
    const email = assertEmail(member.email);
    return linkMember(
      tx,
      { organizationId, by, actor, member, isOpen: found?.isOpen === true, email, mailKeys },
      now(),
    );
  });
}

interface MemberLink {
  organizationId: string;
  by: Authority;
  actor: Actor;
  member: MemberAccess;
  isOpen: boolean;
  email: string;
  mailKeys: MailKeys;
}

async function linkMember(
  tx: Transaction,
  { organizationId, by, actor, member, isOpen, email, mailKeys }: MemberLink,
  at: Date,
): Promise<CreatedEnrolment> {
  assertMayAssign(actor, [member]);
  if (member.status === 'suspended')
    throw new IdentityError('member_suspended', 'This member is suspended. Reinstate them instead.');
  if (isOpen && by !== 'orgctl')
    throw new IdentityError(
      'operator_needed',
      'This member has already set up sign-in. If they lost their password or second factor, ' +
        'contact support: an operator can create a recovery link.',
    );
  const { personId } = member;
  const kind = isOpen ? 'recover' : 'invite';
  const link = { organizationId, personId, kind, email, invitedBy: actor.personId, mailKeys } as const;
  const created = await writeLink(tx, link, at);
  const detail = { memberId: personId, ...(isOpen ? { kind } : {}) };
  await recordAuditEntry(tx, { organizationId, by, action: 'member.link', detail });
  return { ...created, personId, kind };
}

/**
 * Stores a new link; an older one of the membership becomes void.
 *
 * @throws OrganizationError `domain_not_allowed`
 */
async function writeLink(
  tx: Transaction,
  {
    mailKeys,
    ...link
  }: Pick<CreatedEnrolment, 'personId' | 'kind'> & {
    organizationId: string;
    email: string;
    invitedBy: string | null;
    mailKeys: MailKeys;
  },
  createdAt: Date,
): Promise<Pick<CreatedEnrolment, 'token' | 'expiresAt'>> {
  if (link.kind === 'invite') await assertMayInvite(tx, link.organizationId, link.email);
  const token = generateToken();
  const hours = link.kind === 'recover' ? recoveryHours : enrolmentHours;
  const expiresAt = new Date(createdAt.getTime() + hours * hourMs);
  const nothingChosen = { passwordHash: null, providerId: null, subject: null, totpSealed: null, challenge: null };
  await tx.upsert(Enrolment, { ...link, ...nothingChosen, tokenHash: hashToken(token), createdAt, expiresAt });
  // An operator hands a recovery link over: reading a member's mail must not be enough to get one.
  if (mailKeys !== null && link.kind === 'invite') await writeInvitation(tx, { ...link, token }, mailKeys);
  return { token, expiresAt };
}

/** A valid link, with what its person has entered so far. */
export interface OpenEnrolment {
  tokenHash: Buffer;
  organizationId: string;
  organizationName: string;
  personId: string;
  /** The person's name in the organization. */
  name: string;
  /** The address with which the person will sign in. */
  email: string;
  kind: EnrolmentKind;
  passwordHash: string | null;
  /** The provider with whose account (`subject`) the person signs in instead; null: none was chosen. */
  providerId: string | null;
  subject: string | null;
  /** The organization's provider; null when it has none. */
  issuer: string | null;
  /** Whether the organization requires its provider. */
  isProviderRequired: boolean;
  totpSealed: Buffer | null;
  challenge: string | null;
  expiresAt: Date;
}

/** Returns a valid link, otherwise null. */
export async function findEnrolment(db: Queryable, token: string, now: Date): Promise<OpenEnrolment | null> {
  const hash = findTokenHash(token);
  if (hash === null) return null;
  const [row] = await db.query(sql<OpenEnrolment>`
    select e.token_hash as "tokenHash", e.organization_id as "organizationId", o.name as "organizationName",
      e.person_id as "personId", m.name, e.email,
      e.kind, e.password_hash as "passwordHash", e.provider_id as "providerId", e.subject, p.issuer,
      coalesce(p.is_required, false) as "isProviderRequired",
      e.totp_sealed as "totpSealed", e.challenge, e.expires_at as "expiresAt"
    from enrolment e
    join organization o on o.id = e.organization_id
    join membership m on m.organization_id = e.organization_id and m.person_id = e.person_id
    left join sso_provider p on p.organization_id = e.organization_id
    where e.token_hash = ${hash} and ${isLinkValid(now)}`);
  return row === undefined ? null : withDates(row, 'expiresAt');
}

/**
 * Finds the member with the address, else the person who signs in with it, else returns a new
 * person. Members who left count only when no other person has the address. Inviters find a member
 * whose sign-in the organization has not confirmed, also one who has left, by the address of the
 * membership only: they must not learn the other one.
 */
async function findInvitee(
  tx: Transaction,
  { organizationId, email, by }: Pick<CreateEnrolment, 'organizationId' | 'email' | 'by'>,
): Promise<Invitee> {
  type Row = MemberAccess & Omit<Invitee, 'member'> & { isConfirmed: boolean; signsInWith: boolean };
  const known = await tx.query(sql<Row>`
    select p.id as "personId", ${memberColumns},
      coalesce(${consoleAccess()} = 'open', false) as "isOpen", ${isConfirmed()} as "isConfirmed",
      coalesce(i.email = ${email}, false) as "signsInWith"
    from person p
    left join membership m on m.organization_id = ${organizationId} and m.person_id = p.id
    left join sign_in i on i.person_id = p.id
    where p.id in (
      select person_id from membership where organization_id = ${organizationId} and email = ${email}
      union all select person_id from sign_in where email = ${email})
    order by p.id`);
  const rows = known.filter((row) => by === 'orgctl' || row.status === null || row.isConfirmed || row.email === email);
  const members = rows.filter(({ status }) => status !== null);
  const present = members.filter(({ status }) => status !== 'left');
  const candidates = present.length > 0 ? present : members.length > 0 ? members : rows;
  if (candidates.length > 1) throw emailAmbiguous();
  const [found] = candidates;
  if (found === undefined) {
    // Not by time: the id of a person who was known before would look older.
    return { personId: `usr_${randomUUID().replaceAll('-', '')}`, member: null, isOpen: false };
  }
  // An inviter must not learn it; the link's person does when they use it.
  if (by === 'orgctl' && rows.some(({ personId, signsInWith }) => signsInWith && personId !== found.personId))
    throw new IdentityError(
      'email_taken',
      'Another person signs in with this address. Invite the member with a different address, or free this one ' +
        '(orgctl person free-address) if it is theirs.',
    );
  const { isOpen, personId } = found;
  return { personId, member: found.status === null ? null : found, isOpen };
}

/** Returns all roles. @throws IdentityError `no_such_role` */
async function getRoles(tx: Transaction, organizationId: string, keys: readonly string[]): Promise<Role[]> {
  const roles = await tx.find(
    Role,
    { key: { $in: [...keys] }, $or: [{ organizationId: null }, { organizationId }] },
    { orderBy: { key: 'asc' } },
  );
  const missing = keys.filter((key) => !roles.some((role) => role.key === key));
  if (missing.length > 0)
    throw new IdentityError('no_such_role', `The organization has no role ${missing.join(', ')}.`);
  return roles;
}

/** The holder of a link becomes its member, and a role is given: both need the same. */
function assertMayAssign(actor: Actor, given: readonly Pick<Role, 'isOwner' | 'permissions'>[]): void {
  for (const each of given) {
    assertMayChange(actor, each);
    assertHasPermissions(actor, each.permissions);
  }
}

/**
 * Inserts a new person, or invites a member who had left, with these roles only. Returns the old
 * and new value of what changed of one who had left.
 */
async function writeMember(
  tx: Transaction,
  { organizationId, email, name, title }: CreateEnrolment,
  { personId, member }: Pick<Invitee, 'personId' | 'member'>,
  roles: Role[],
): Promise<MemberChanges> {
  const typed = { name: name?.trim() || null, title: title?.trim() || null };
  let changes: MemberChanges = {};
  if (member === null) {
    await tx.upsert(Person, { id: personId }, { onConflictAction: 'ignore' });
    await tx.insert(Membership, {
      organizationId,
      personId,
      name: (typed.name ?? email.split('@')[0]) || email,
      email,
      title: typed.title,
      status: 'invited',
    });
  } else {
    const membership = await tx.findOneOrFail(Membership, { organizationId, personId }, writeLock);
    await tx.nativeDelete(MembershipRole, { organizationId, personId });
    membership.status = 'invited';
    changes = membership.changeDetails(typed.name ?? membership.name, typed.title ?? membership.title);
    await tx.flush();
  }
  for (const { id: roleId } of roles)
    await tx.upsert(MembershipRole, { organizationId, personId, roleId }, { onConflictAction: 'ignore' });
  return changes;
}

const emailAmbiguous = () =>
  new IdentityError(
    'email_ambiguous',
    'Several members have this address. Remove the members who do not own it, and invite each of them with their own ' +
      'address.',
  );
