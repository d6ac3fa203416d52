/** The organization's own record. `$2` organization; one JSON object (`contract/resources.ts`). */
export const organizationSql = /* sql */ `
  select row_to_json(r) from (
    select o.id, o.name, o.slug, o.kind, o.status, api.utc(o.created_at) as "createdAt"
    from api.organization o
    where o.id = $2
  ) r`;
