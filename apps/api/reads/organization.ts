/** The record of the organization `request.organization_id`; one JSON object. */
export const organizationSql = /* sql */ `
  select row_to_json(r) from (
    select o.id, o.name, o.slug, o.kind, o.status, api.utc(o.created_at) as "createdAt"
    from api.organization o
    where o.id = request.organization_id
  ) r`;
