/** Members of `asked.organization_id` who have not left, by name, then userId; one JSON array. */
export const membersSql = /* sql */ `
  select coalesce(json_agg(row_to_json(r) order by r.name, r."userId"), '[]') from (
    select m.person_id as "userId", m.name, m.email, m.title, m.status,
      (select coalesce(json_agg(json_build_object('id', o.id, 'key', o.key, 'name', o.name) order by o.key, o.id), '[]')
        from api.member_role mr join api.role o on o.id = mr.role_id
        where mr.organization_id = m.organization_id and mr.person_id = m.person_id) as roles
    from api.member m
    where m.organization_id = asked.organization_id and m.status <> 'left'
  ) r`;
