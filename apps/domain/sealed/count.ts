import type { Pool } from 'pg';
import type { SealingKeys } from '../seal/envelope.ts';
import { isSealedSql, type SealedKind, type SealedTable, sealedKinds } from './kinds.ts';

/**
 * How many rows of a table are sealed with one version of the keys; null: in no form that this
 * release reads.
 */
export interface SealedCount {
  table: SealedTable;
  version: number | null;
  rows: number;
}

/** What the keys of WEBHOOK_SECRET_KEYS hold now. Versions are ascending. */
export interface Sealing {
  /** The version that seals. */
  newest: number;
  counts: SealedCount[];
  /**
   * Versions behind it that no row needs: older ones that may go, or one that is being added and
   * comes first next.
   */
  unused: number[];
  /** Versions that rows need and that the keys lack. */
  missing: number[];
}

/**
 * Counts what is sealed, by version, and compares it with the keys. Rows that are over and only
 * wait to be erased count no more.
 */
export async function countSealed(pool: Pool, keys: SealingKeys): Promise<Sealing> {
  const counts: SealedCount[] = [];
  for (const kind of sealedKinds) counts.push(...(await countKind(pool, kind)));
  const others = keys.slice(1).map(({ version }) => version);
  const needed = new Set(counts.flatMap(({ version }) => version ?? []));
  return {
    newest: keys[0].version,
    counts,
    unused: ascending(others.filter((version) => !needed.has(version))),
    missing: ascending([...needed].filter((version) => !keys.some((key) => key.version === version))),
  };
}

/** The form is that of `envelope.ts`: format 1, version, 12 bytes of nonce, a text, 16 of tag. */
async function countKind(pool: Pool, kind: SealedKind): Promise<SealedCount[]> {
  const { rows } = await pool.query<Omit<SealedCount, 'table'>>(
    `select case when length(s.bytes) < 32 then null
         when get_byte(s.bytes, 0) = 1 then get_byte(s.bytes, 1) * 256 + get_byte(s.bytes, 2) end as version,
       count(*)::integer as rows
     from (select ${kind.column} as bytes from ${kind.table} where ${isSealedSql(kind)}) s
     group by 1 order by 1`,
  );
  return rows.map(({ version, rows: count }) => ({ table: kind.table, version, rows: count }));
}

const ascending = (versions: number[]): number[] => versions.toSorted((a, b) => a - b);
