import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import type { SealingKeys } from '../encryption/envelope.ts';
import { type SealedTable, sealedKinds } from './kinds.ts';

/** Rows of a table sealed with one key version; null: a form that this release cannot read. */
interface SealedCount {
  table: SealedTable;
  version: number | null;
  rows: number;
}

/** What the keys of WEBHOOK_SECRET_KEYS seal. Versions are ascending. */
export interface Sealing {
  /** The version that seals. */
  newest: number;
  counts: SealedCount[];
  /** Other versions that no row needs: old ones, or one that is being added. */
  unused: number[];
  /** Versions that rows need and that are not among the keys. */
  missing: number[];
}

/** Counts sealed rows by version and compares them with the keys. Expired rows do not count. */
export async function countSealed(db: Queryable, keys: SealingKeys): Promise<Sealing> {
  const rows = await db.query(sql<SealedCount>`
    select kind as table, version, count::integer as rows from sealed_versions() order by version nulls last`);
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
