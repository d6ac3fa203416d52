import { type RawBuilder, sql } from 'kysely';
import { isConfirmed } from '../access/console-access.ts';

/**
 * Returns an SQL condition on a link's row `e`: whether the link could still be created. It checks
 * what `createEnrolment` checks. That no other person signs in with the address is checked when the
 * link is used, so that opening it does not tell its creator.
 *
 * A link grants what its member is when it is used, not when it was created. Otherwise an
 * administrator who kept the link of a plain member could enrol as the owner that this member has
 * become. Use it under `lockOrganization` where the result must stay true.
 */
export const isLinkValid = (now: Date): RawBuilder<unknown> => sql`(
  e.expires_at > ${now.toISOString()}::timestamptz and ${isLinkForPerson} and ${isForPerson} and ${isDomainAllowed}
  and ${isInviterValid})`;

/** The address identifies this member of the organization, and no other one. */
const isLinkForPerson = sql`exists (
  select from membership m left join sign_in i on i.person_id = m.person_id
  where m.organization_id = e.organization_id and m.person_id = e.person_id and m.status in ('invited', 'active')
    and e.email in (m.email, i.email))
  and not exists (
    select from membership other
    where other.organization_id = e.organization_id and other.person_id <> e.person_id and other.status <> 'left'
      and other.email = e.email)`;

/**
 * A link invites until the organization is open to its person; from then on an operator's recovers.
 * Whether they can already sign in makes no difference.
 */
const isForPerson = sql`exists (
  select from membership m
  where m.organization_id = e.organization_id and m.person_id = e.person_id
    and (e.kind = 'recover') = (m.status = 'active' and ${isConfirmed()}))`;

/** An invitation's address is at a domain that the organization allows now (`assertMayInvite`). */
const isDomainAllowed = sql`(e.kind = 'recover' or not exists (
  select from organization_setting st
  where st.organization_id = e.organization_id and cardinality(st.invitation_domains) > 0
    and split_part(e.email, '@', -1) <> all (st.invitation_domains)))`;

/**
 * Its creator is an active member with `org.members.manage` and every permission of the member's
 * roles, and an owner if the member is one. A link of an operator has no such condition.
 */
const isInviterValid = sql`(e.invited_by is null or exists (
  select from membership i
  cross join lateral (
    select array_agg(p) as permissions
    from membership_role mr join role r on r.id = mr.role_id, unnest(r.permissions) as p
    where mr.organization_id = i.organization_id and mr.person_id = i.person_id
  ) holds
  where i.organization_id = e.organization_id and i.person_id = e.invited_by and i.status = 'active'
    and 'org.members.manage' = any (holds.permissions)
    and not exists (
      select from membership_role mr join role r on r.id = mr.role_id
      where mr.organization_id = e.organization_id and mr.person_id = e.person_id
        and (not r.permissions <@ holds.permissions
          or r.organization_id is null and r.key = 'owner' and not exists (
            select from membership_role o
            where o.organization_id = i.organization_id and o.person_id = i.person_id and o.role_id = r.id)))))`;
