/** The record of the organization `asked.organization_id`; one JSON object. */
export const organizationSql = /* sql */ `
  select row_to_json(r) from (
    select o.id, o.name, o.slug, o.kind, o.status, api.utc(o.created_at) as "createdAt"
    from api.organization o
    where o.id = asked.organization_id
  ) r`;
