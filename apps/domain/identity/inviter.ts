import { type RawBuilder, sql } from 'kysely';

/**
 * Whether whoever made a link could make it now, as a condition on its row `e`: they are an active member who holds `org.members.manage` and every permission of
 * the member's roles, and an owner where the member is one. A link of an operator always stands.
 *
 * A link gives what its member is when it is used, and not when it was made: else an administrator who kept the link of a plain member could enrol as the owner that this member
 * has become, and who was removed could come back by a link that they had made. Ask under `lockOrganization` where the answer must hold.
 */
export const inviterStands: RawBuilder<boolean> = sql<boolean>`(e.invited_by is null or exists (
  select from membership i
  cross join lateral (
    select array_agg(p) as permissions from membership_role mr join role r on r.id = mr.role_id, unnest(r.permissions) as p
    where mr.organization_id = i.organization_id and mr.person_id = i.person_id
  ) holds
  where i.organization_id = e.organization_id and i.person_id = e.invited_by and i.status = 'active'
    and 'org.members.manage' = any (holds.permissions)
    and not exists (
      select from membership_role mr join role r on r.id = mr.role_id
      where mr.organization_id = e.organization_id and mr.person_id = e.person_id
        and (not r.permissions <@ holds.permissions
          or r.organization_id is null and r.key = 'owner' and not exists (
            select from membership_role o where o.organization_id = i.organization_id and o.person_id = i.person_id and o.role_id = r.id)))))`;
