/** System roles in fixed order, then those of `asked.organization_id` by name, id; one JSON array. */
export const rolesSql = /* sql */ `
  select json_agg(json_build_object(
    'id', r.id, 'key', r.key, 'name', r.name, 'description', r.description,
    'isSystem', r.organization_id is null, 'permissions', r.permissions
  ) order by r.position nulls last, r.name, r.id)
  from api.role r
  where r.organization_id = asked.organization_id or r.organization_id is null`;
