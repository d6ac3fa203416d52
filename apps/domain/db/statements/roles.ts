/** System roles in fixed order, then own roles by name, id. `$2` organization; one JSON array. */
export const rolesSql = /* sql */ `
  select json_agg(json_build_object(
    'id', r.id, 'key', r.key, 'name', r.name, 'description', r.description,
    'isSystem', r.organization_id is null, 'permissions', r.permissions
  ) order by r.position nulls last, r.name, r.id)
  from api.role r
  where r.organization_id = $2 or r.organization_id is null`;
