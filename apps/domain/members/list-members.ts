import { type RawBuilder, sql } from 'kysely';
import type { MemberAccess } from '../access/actor.ts';
import { isConfirmed } from '../access/console-access.ts';
import { OrganizationError } from '../access/errors.ts';
import { isActiveGrant } from '../clients/grant-conditions.ts';
import { canonicalEmail } from '../contract/email.ts';
import type { Queryable } from '../db/database.ts';
import { contains } from '../db/fold.ts';
import { buildPage, type ListPage } from '../db/list-page.ts';
import { joinConditions, withDates } from '../db/statement.ts';
import { isLinkValid } from '../identity/link-validity.ts';
import type { MailOutcome } from '../mail/find-mail.ts';

export type MemberStatus = MemberAccess['status'];

export interface AssignedRole {
  id: string;
  key: string;
  name: string;
  isSystem: boolean;
}

export interface MemberRow {
  personId: string;
  name: string;
  email: string;
  title: string | null;
  status: MemberStatus;
  /** System roles first. */
  roles: AssignedRole[];
  /** The number of their valid keys. */
  validKeys: number;
  /** Whether they used a link of the organization, or an operator confirmed their sign-in. */
  hasEnrolled: boolean;
  /** When they last passed a second factor; null: never, or their sign-in is not confirmed. */
  lastSeenAt: Date | null;
}

/** Selects members. `present`: not left. Empty `text` and null `roleId` match everything. */
export interface MemberFilter {
  status: MemberStatus | 'present' | 'all';
  /** Part of a name, title or address. */
  text: string;
  roleId: string | null;
  /** Active members whose sign-in is confirmed, by whether an account of the provider is linked; null: all. */
  account?: 'linked' | 'none' | null;
}

/** The order of lists, as in the index membership_by_name. */
const order = (table: 'm' | 'c') =>
  sql`left(${sql.ref(`${table}.name`)}, 100) collate "und-x-icu", ${sql.ref(`${table}.person_id`)}`;

/**
 * Lists one page of an organization's members, by name as people order names, then by id.
 *
 * @param after - the id of the last member of the previous page; null for the first page.
 */
export async function listMembers(
  db: Queryable,
  organizationId: string,
  filter: MemberFilter,
  after: string | null,
  pageSize: number,
  now: Date,
): Promise<ListPage<MemberRow>> {
  const { status, text, roleId, account = null } = filter;
  const conditions = [
    sql`m.organization_id = ${organizationId}`,
    status === 'all' ? null : status === 'present' ? sql`m.status <> 'left'` : sql`m.status = ${status}`,
    text.trim() &&
      sql`(${contains('m.name', text)} or ${contains('m.title', text)} or ${contains('m.email', text)}
        or ${contains('m.email', canonicalEmail(text))})`,
    roleId &&
      sql`exists (select from membership_role h where h.organization_id = m.organization_id
        and h.person_id = m.person_id and h.role_id = ${roleId})`,
    account &&
      sql`m.status = 'active' and ${isConfirmed()} and ${account === 'linked' ? sql`` : sql`not`} exists (
        select from sso_subject s join sso_provider p on p.id = s.provider_id
        where p.organization_id = m.organization_id and s.person_id = m.person_id)`,
    after &&
      sql`(${order('m')}) > (select ${order('c')} from membership c
        where c.organization_id = ${organizationId} and c.person_id = ${after})`,
  ];
  const rows = await db.query(sql<MemberRow>`
    with m as (
      select m.organization_id, m.person_id, m.name, m.email, m.title, m.status, m.accepted from membership m
      where ${joinConditions(conditions)} order by ${order('m')} limit ${sql.lit(pageSize + 1)}
    )
    select ${columns(now)} from m order by ${order('m')}`);
  return buildPage(
    rows.map((row) => withDates(row, 'lastSeenAt')),
    pageSize,
    ({ personId }) => personId,
  );
}

export interface MemberDetails extends MemberRow {
  isOwner: boolean;
  /** The number of families whose access is with them. */
  activeGrants: number;
  /** The one-time link that was sent to them, while it works: its creator could still create it. */
  link: { expiresAt: Date } | null;
  /** The newest email with a link; null when there was none in 30 days. */
  invitation: MailOutcome | null;
  /** Their account at the organization's provider; null when it has none. `linkedAt` null: none is linked. */
  account: { linkedAt: Date | null } | null;
}

interface DetailsRow extends MemberRow {
  mailState: MailOutcome['state'] | null;
  mailReply: string | null;
  mailAt: string | null;
  activeGrants: number;
  linkExpiresAt: string | null;
  hasProvider: boolean;
  accountLinkedAt: string | null;
}

/**
 * Returns any member that the organization ever had.
 *
 * @throws OrganizationError `no_such_member`
 */
export async function getMemberDetails(
  db: Queryable,
  organizationId: string,
  personId: string,
  now: Date,
): Promise<MemberDetails> {
  const [row] = await db.query(sql<DetailsRow>`
    select ${columns(now)}, i.state as "mailState", i.reply as "mailReply", i.at as "mailAt",
      (select count(*)::int from client_grant g where g.organization_id = m.organization_id
        and g.professional_id = m.person_id and ${isActiveGrant}) as "activeGrants",
      (select e.expires_at from enrolment e where e.organization_id = m.organization_id and e.person_id = m.person_id
        and ${isLinkValid(now)}) as "linkExpiresAt",
      p.id is not null as "hasProvider", s.created_at as "accountLinkedAt"
    from membership m
    left join sso_provider p on p.organization_id = m.organization_id
    left join sso_subject s on s.provider_id = p.id and s.person_id = m.person_id
    left join lateral (
      select l.state, l.reply, coalesce(l.settled_at, l.created_at) as at from mail l
      where l.organization_id = m.organization_id and l.person_id = m.person_id and l.kind = 'invitation'
      order by l.created_at desc, l.id desc limit 1) i on true
    where m.organization_id = ${organizationId} and m.person_id = ${personId}`);
  if (row === undefined) throw new OrganizationError('no_such_member', 'The organization has no such member.');
  const { linkExpiresAt, mailState, mailReply, mailAt, hasProvider, accountLinkedAt, ...member } = row;
  return {
    ...withDates(member, 'lastSeenAt'),
    activeGrants: row.activeGrants,
    isOwner: row.roles.some(({ isSystem, key }) => isSystem && key === 'owner'),
    link: linkExpiresAt === null ? null : { expiresAt: new Date(linkExpiresAt) },
    invitation: mailState === null ? null : { state: mailState, reply: mailReply, at: new Date(mailAt ?? 0) },
    account: hasProvider ? { linkedAt: accountLinkedAt === null ? null : new Date(accountLinkedAt) } : null,
  };
}

/**
 * A valid key has one of the organization's 25 numbers, so counting them reads 25 rows, however many
 * keys there were. A sign-in belongs to the whole region: it is shown only to an organization that
 * has confirmed it. Otherwise any administrator could invite an address to learn whether it signs
 * in here.
 */
const columns = (now: Date): RawBuilder<unknown> => sql`
  m.person_id as "personId", m.name, m.email, m.title, m.status,
  (select coalesce(json_agg(json_build_object('id', r.id, 'key', r.key, 'name', r.name, 'isSystem',
    r.organization_id is null)
      order by r.position nulls last, r.name collate "und-x-icu", r.id), '[]')
    from membership_role mr join role r on r.id = mr.role_id
    where mr.organization_id = m.organization_id and mr.person_id = m.person_id) as roles,
  (select count(*)::int from api_key k where k.organization_id = m.organization_id and k.number is not null
    and k.creator_id = m.person_id
    and (k.expires_at is null or k.expires_at > ${now.toISOString()}::timestamptz)) as "validKeys",
  ${isConfirmed()} as "hasEnrolled",
  case when ${isConfirmed()} then greatest(
    (select max(coalesce(f.last_used_at, f.created_at)) from second_factor f where f.person_id = m.person_id),
    (select max(c.used_at) from recovery_code c where c.person_id = m.person_id)) end as "lastSeenAt"`;
