/** The target of a test event. `secrets`: sealed, base64, newest first. `nowMs`: PostgreSQL's. */
export interface TestTarget {
  url: string;
  secrets: string[] | null;
  newestSecretId: string;
  /** The sealed custom headers, base64; null for none. */
  headers: string | null;
  nowMs: number;
}

/** A webhook that is not deleted, with its valid secrets. `$1` organization, `$2` webhook. */
export const testTargetSql = /* sql */ `
  select w.url, s.secrets, s."newestSecretId", encode(w.headers_sealed, 'base64') as headers,
    (extract(epoch from clock_timestamp()) * 1000)::double precision as "nowMs"
  from webhook w
  cross join lateral (
    select json_agg(encode(s.sealed, 'base64') order by s.valid_until desc nulls first, s.created_at desc) as secrets,
      (array_agg(s.id) filter (where s.valid_until is null))[1] as "newestSecretId"
    from webhook_secret s
    where s.organization_id = w.organization_id and s.webhook_id = w.id and (s.valid_until is null
      or s.valid_until > clock_timestamp())
  ) s
  where w.organization_id = $1 and w.id = $2 and w.state <> 'deleted'`;
