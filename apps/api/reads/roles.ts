/** System roles in fixed order, then those of `request.organization_id` by name, id; one JSON array. */
export const rolesSql = /* sql */ `
  select array_to_json(array(
    select row_to_json(o) from (
      select r.id, r.key, r.name, r.description, r.organization_id is null as "isSystem", r.permissions
      from api.role r
      where r.organization_id = request.organization_id or r.organization_id is null
      order by r.position nulls last, r.name, r.id
    ) o))`;
