import { randomUUID } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type Actor,
  assertHolds,
  assertMayChange,
  getActor,
  lockOrganization,
  type MemberAccess,
  memberColumns,
} from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { consoleAccess } from '../access/console-access.ts';
import { recordActivity } from '../activity/record.ts';
import { Enrolment } from '../db/entities/identity.ts';
import { Membership, MembershipRole, Organization, Person, Role } from '../db/entities/organization.ts';
import { writeLock } from '../db/locks.ts';
import { query, withDates } from '../db/statement.ts';
import { assertEmail } from './email.ts';
import { enrolmentHours, recoveryHours } from './limits.ts';
import { isLinkValid } from './link-validity.ts';
import { IdentityRefused } from './refused.ts';
import { findTokenHash, generateToken, hashOf } from './token.ts';
import type { EnrolmentDetails, EnrolmentKind } from './types.ts';

/**
 * One-time links, by which people enrol and join further organizations. The service sends no mail;
 * the creator of a link hands it over.
 *
 * The holder of a link can become its person, so creating one requires what its creator could do
 * anyway: all permissions of the member's roles, and an owner for an owner. A person who can
 * already sign in keeps password and factors, and confirms with them that they are this member. The
 * link opens no other organization. Only an operator can let a person in again who
 * has lost password or factors (`recover`). `isLinkValid` checks all of it again when the link is
 * used.
 *
 * Nothing that an inviter gets says whether the address signs in here, or is of a member of another
 * organization: neither the outcome, nor the link's pages, nor the log.
 */

interface CreateEnrolment {
  organizationId: string;
  /** The address of a member of the organization, or of a new person. */
  email: string;
  /**
   * The person's name in the organization. When it is absent, a new person gets the part of the
   * address before the `@`, and a member keeps their name. The same applies to the title.
   */
  name?: string;
  title?: string | null;
  /** Keys of roles to assign. Absent: `member` for a new person, unchanged for others. */
  roleKeys?: readonly string[];
  by: Authority;
}

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
 * Creates a one-time link for a person, valid for 72 hours (a recovery link: one hour). An older
 * link of theirs in this organization becomes void. A new member, and one who had left, is
 * `invited` until the link is used. Requires `org.members.manage`.
 *
 * @throws OrganizationRefused `may_not_manage_members`, `not_held`, `only_owners`; IdentityRefused
 * `email_malformed`, `email_taken`, `email_ambiguous`, `no_such_organization`, `no_such_role`,
 * `member_suspended`, `operator_needed`.
 */
export async function createEnrolment(
  em: EntityManager,
  input: CreateEnrolment,
  now: () => Date = () => new Date(),
): Promise<CreatedEnrolment> {
  const { organizationId, by } = input;
  const email = assertEmail(input.email);
  return em.fork().transactional(async (tx) => {
    await lockOrganization(tx, organizationId);
    if ((await tx.count(Organization, { id: organizationId })) === 0)
      throw new IdentityRefused('no_such_organization', 'The organization does not exist.');
    const actor = await getActor(tx, organizationId, by, 'org.members.manage');
    const invitee = await findInvitee(tx, { organizationId, email, by });
    const isNew = invitee.member === null || invitee.member.status === 'left';
    const roles = await getRoles(tx, organizationId, input.roleKeys ?? (isNew ? ['member'] : []));
    assertMayInvite(actor, invitee, isNew || invitee.member === null ? roles : [...roles, invitee.member]);
    const kind = invitee.isOpen ? 'recover' : 'invite';
    const changed = await writeMember(tx, { ...input, email }, invitee, roles);
    const { personId } = invitee;
    const link = await writeLink(tx, { organizationId, personId, kind, email, invitedBy: actor.personId }, now());
    await recordActivity(tx, {
      organizationId,
      by,
      action: 'member.invite',
      detail: {
        memberId: personId,
        roleKeys: roles.map(({ key }) => key),
        ...(changed.length > 0 ? { changed } : {}),
        ...(kind === 'recover' ? { kind } : {}),
      },
    });
    return { ...link, personId, kind };
  });
}

/** Stores a new link; an older one of the membership becomes void. */
async function writeLink(
  tx: EntityManager,
  link: Pick<CreatedEnrolment, 'personId' | 'kind'> & {
    organizationId: string;
    email: string;
    invitedBy: string | null;
  },
  createdAt: Date,
): Promise<Pick<CreatedEnrolment, 'token' | 'expiresAt'>> {
  const token = generateToken();
  const hours = link.kind === 'recover' ? recoveryHours : enrolmentHours;
  const expiresAt = new Date(createdAt.getTime() + hours * 3_600_000);
  const nothingChosen = { passwordHash: null, totpSealed: null, challenge: null };
  await tx.upsert(Enrolment, { ...link, ...nothingChosen, tokenHash: hashOf(token), createdAt, expiresAt });
  return { token, expiresAt };
}

/** Returns the person and organization of a valid link, otherwise null. */
export async function findEnrolment(em: EntityManager, token: string, now: Date): Promise<EnrolmentDetails | null> {
  const found = await findEnrolmentRow(em, token, now);
  if (found === null) return null;
  const { personId, email, organizationId, organizationName, kind, passwordHash, expiresAt } = found;
  return { personId, email, organizationId, organizationName, kind, hasPassword: passwordHash !== null, expiresAt };
}

/** A link's row, with what its person has entered so far. */
export interface EnrolmentRow {
  tokenHash: Buffer;
  organizationId: string;
  organizationName: string;
  personId: string;
  /** The person's name in the organization. */
  name: string;
  email: string;
  kind: EnrolmentKind;
  passwordHash: string | null;
  totpSealed: Buffer | null;
  challenge: string | null;
  expiresAt: Date;
}

/** Returns the same for the next steps. */
export async function findEnrolmentRow(em: EntityManager, token: string, now: Date): Promise<EnrolmentRow | null> {
  const hash = findTokenHash(token);
  if (hash === null) return null;
  const [row] = await query<EnrolmentRow>(em)`
    select e.token_hash as "tokenHash", e.organization_id as "organizationId", o.name as "organizationName",
      e.person_id as "personId", m.name, e.email,
      e.kind, e.password_hash as "passwordHash", e.totp_sealed as "totpSealed", e.challenge, e.expires_at as "expiresAt"
    from enrolment e
    join organization o on o.id = e.organization_id
    join membership m on m.organization_id = e.organization_id and m.person_id = e.person_id
    where e.token_hash = ${hash} and ${isLinkValid(now)}`;
  return row === undefined ? null : withDates(row, 'expiresAt');
}

/**
 * Finds the member with the address, else the person who signs in with it, else returns a new
 * person. Members who left count only when no other person has the address.
 */
async function findInvitee(
  tx: EntityManager,
  { organizationId, email, by }: Pick<CreateEnrolment, 'organizationId' | 'email' | 'by'>,
): Promise<Invitee> {
  const rows = await query<MemberAccess & Omit<Invitee, 'member'> & { signsInWith: boolean }>(tx)`
    select p.id as "personId", ${memberColumns},
      coalesce(${consoleAccess()} = 'open', false) as "isOpen",
      coalesce(lower(i.email) = lower(${email}), false) as "signsInWith"
    from person p
    left join membership m on m.organization_id = ${organizationId} and m.person_id = p.id
    left join sign_in i on i.person_id = p.id
    where p.id in (
      select person_id from membership where organization_id = ${organizationId} and lower(email) = lower(${email})
      union all select person_id from sign_in where lower(email) = lower(${email}))
    order by p.id`;
  const members = rows.filter(({ status }) => status !== null);
  const present = members.filter(({ status }) => status !== 'left');
  const candidates = present.length > 0 ? present : members.length > 0 ? members : rows;
  if (candidates.length > 1)
    throw new IdentityRefused(
      'email_ambiguous',
      'Several members have this address. Remove the members who do not own it, and invite each ' +
        'of them with their own address.',
    );
  const [found] = candidates;
  if (found === undefined) {
    // Not by time: the id of a person who was known before would look older.
    return { personId: `usr_${randomUUID().replaceAll('-', '')}`, member: null, isOpen: false };
  }
  // An inviter must not learn it; the link's person does when they use it.
  if (by === 'operator' && rows.some(({ personId, signsInWith }) => signsInWith && personId !== found.personId))
    throw new IdentityRefused(
      'email_taken',
      'Another person signs in with this address. Invite the member with a different address, or release this one ' +
        '(orgctl person release-address) if it is theirs.',
    );
  const { isOpen, personId } = found;
  return { personId, member: found.status === null ? null : found, isOpen };
}

/**
 * Returns all roles.
 *
 * @throws when one may not be assigned.
 */
async function getRoles(tx: EntityManager, organizationId: string, keys: readonly string[]): Promise<Role[]> {
  const roles = await tx.find(
    Role,
    { key: { $in: [...keys] }, $or: [{ organizationId: null }, { organizationId }] },
    { orderBy: { key: 'asc' } },
  );
  const missing = keys.filter((key) => !roles.some((role) => role.key === key));
  if (missing.length > 0)
    throw new IdentityRefused('no_such_role', `The organization has no role ${missing.join(', ')}.`);
  return roles;
}

function assertMayInvite(actor: Actor, { member, isOpen }: Invitee, given: Pick<Role, 'isOwner' | 'permissions'>[]) {
  for (const role of given) {
    assertMayChange(actor, role);
    assertHolds(actor, role.permissions);
  }
  if (member?.status === 'suspended')
    throw new IdentityRefused('member_suspended', 'This member is suspended. Reinstate them instead.');
  const isOperator = actor.personId === null;
  if (isOperator) return;
  if (isOpen)
    throw new IdentityRefused(
      'operator_needed',
      'This member has already set up sign-in. If they lost their password or second factor, ' +
        'contact support: an operator can create a recovery link.',
    );
}

/**
 * Inserts a new person, invites a member who had left with these roles only, and adds the roles to
 * those of others. A member gets the name and title that the inviter typed. Returns which of the
 * two changed.
 */
async function writeMember(
  tx: EntityManager,
  { organizationId, email, name, title }: CreateEnrolment,
  { personId, member }: Invitee,
  roles: Role[],
): Promise<string[]> {
  const typed = { name: name?.trim() || null, title: title?.trim() || null };
  const changed: string[] = [];
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
    if (membership.status === 'left') {
      await tx.nativeDelete(MembershipRole, { organizationId, personId });
      membership.status = 'invited';
    }
    for (const field of ['name', 'title'] as const)
      if (typed[field] !== null && typed[field] !== membership[field]) {
        membership[field] = typed[field];
        changed.push(field);
      }
    await tx.flush();
  }
  for (const { id: roleId } of roles)
    await tx.upsert(MembershipRole, { organizationId, personId, roleId }, { onConflictAction: 'ignore' });
  return changed;
}
