import type { Pool } from 'pg';
import type { SealingKeys } from '../seal/envelope.ts';
import { type SealedTable, sealedKinds } from './kinds.ts';

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
  const { rows } = await pool.query<SealedCount>(
    'select kind as table, version, count::integer as rows from sealed_versions() order by version nulls last',
  );
  const counts = sealedKinds.flatMap((kind) => rows.filter(({ table }) => table === kind.table));
  const others = keys.slice(1).map(({ version }) => version);
  const needed = new Set(counts.flatMap(({ version }) => version ?? []));
  return {
    newest: keys[0].version,
    counts,
    unused: ascending(others.filter((version) => !needed.has(version))),
    missing: ascending([...needed].filter((version) => !keys.some((key) => key.version === version))),
  };
}

const ascending = (versions: number[]): number[] => versions.toSorted((a, b) => a - b);
