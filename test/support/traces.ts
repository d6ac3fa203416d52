import type { TestInstallation } from './setup.ts';

/**
 * Returns every row of every table as text, by table; with `statistics` also what the planner keeps
 * of their values.
 */
export async function dumpTables(
  { owner }: Pick<TestInstallation, 'owner'>,
  { statistics = false } = {},
): Promise<Map<string, string>> {
  const { rows: tables } = await owner.pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname !~ '^pg_toast' and n.nspname <> 'information_schema'
       and (n.nspname <> 'pg_catalog' or $1 and c.relname like 'pg\\_statistic%')`,
    [statistics],
  );
  const texts = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await owner.pool.query<{ line: string }>(`select t::text as line from ${name} t`);
    texts.set(name, rows.map(({ line }) => line).join('\n'));
  }
  return texts;
}

/** Returns a text as it may be stored: plain, in hexadecimal, and in base64 at each of the three alignments. */
export function listTraces(text: string): string[] {
  const bytes = Buffer.from(text);
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift, 'x'), bytes])
      .toString('base64')
      .slice(4, Math.floor((bytes.length * 4) / 3) - 2),
  );
  return [text, bytes.toString('hex'), ...base64];
}
