/** Members of `request.organization_id` who have not left, by name, then userId; one JSON array. */
export const membersSql = /* sql */ `
  select array_to_json(array(
    select row_to_json(r) from (
      select m.person_id as "userId", m.name, m.email, m.title, m.status,
        array_to_json(array(
          select row_to_json(o) from (
            select o.id, o.key, o.name
            from api.member_role mr join api.role o on o.id = mr.role_id
            where mr.organization_id = m.organization_id and mr.person_id = m.person_id
            order by o.key, o.id
          ) o)) as roles
      from api.member m
      where m.organization_id = request.organization_id and m.status <> 'left'
    ) r order by r.name, r."userId"))`;
