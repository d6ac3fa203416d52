import type { Pool } from 'pg';

/** Changes made by reading: when a session was last used. */
const volatile: Record<string, string> = { console_session: `- 'last_seen_at'` };

/**
 * Returns a fingerprint per table; two are equal when nothing was inserted, changed or deleted in
 * between. Left out are sign-in attempts, pending second factors and records of submitted forms,
 * which rejected requests write as well. With an organization: its rows only.
 */
export async function fingerprintTables(pool: Pool, organizationId?: string): Promise<Record<string, string>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and not relispartition
       and relname not in ('form_use', 'sign_in_failure', 'challenge') order by relname`,
  );
  const parts = tables.map(
    ({ name }) =>
      `select '${name}' as name, count(*) || ' ' || coalesce(md5(string_agg(t.line, ','
        order by t.line)), '') as content
       from (select (to_jsonb(r) ${volatile[name] ?? ''})::text as line from "${name}" r
         where $1::text is null or to_jsonb(r) ->> 'organization_id' = $1) t`,
  );
  // Prepared, because planning it takes longer than running it, and tests compare thousands of times.
  const { rows } = await pool.query<{ name: string; content: string }>({
    name: 'fingerprintTables',
    text: parts.join(' union all '),
    values: [organizationId ?? null],
  });
  return Object.fromEntries(rows.map(({ name, content }) => [name, content]));
}
