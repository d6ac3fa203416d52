/** Whether the migration `$1` has been applied: one row, `{current: boolean}`. */
export const schemaIsCurrentSql = /* sql */ `select exists (select from api.schema_version v
  where v.name = $1) as current`;
