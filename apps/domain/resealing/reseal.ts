import type { Pool } from 'pg';
import { reseal, type SealingKeys, UnsealError, unseal } from '../encryption/envelope.ts';
import { isSealedSql, type SealedIds, type SealedKind, type SealedTable, sealedKinds } from './kinds.ts';

/** A row that cannot be unsealed. `version`: of the key it needs; null: unknown format. */
export interface UnopenedRow {
  ids: SealedIds;
  reason: UnsealError['reason'];
  version: number | null;
}

/** The result for one table. `current` rows had the newest key before, and unseal with it. */
export interface Resealed {
  table: SealedTable;
  resealed: number;
  current: number;
  unopened: UnopenedRow[];
}

interface SealedRow {
  ids: SealedIds;
  sealed: Buffer;
}

const pageRows = 1_000;

/**
 * Seals every sealed text in the database again with the newest key, so that older keys can be
 * removed. The secrets stay the same, so no organization's audit log has an entry of it.
 *
 * Each row is a separate statement, which changes it only if it is as it was read: a row that is
 * rotated, removed or resealed meanwhile keeps its new value, a writer waits for one row at most,
 * and another call continues after an interruption. Rows that a pod without the newest key seals
 * meanwhile may be missed; `countSealed` finds them.
 *
 * @param onPage - receives the number of rows of a table after each page of a thousand.
 */
export async function resealAll(
  pool: Pool,
  keys: SealingKeys,
  onPage: (table: SealedTable, rows: number) => void = () => {},
): Promise<Resealed[]> {
  const all: Resealed[] = [];
  for (const kind of sealedKinds) all.push(await resealKind(pool, kind, keys, onPage));
  return all;
}

async function resealKind(
  pool: Pool,
  kind: SealedKind,
  keys: SealingKeys,
  onPage: (table: SealedTable, rows: number) => void,
): Promise<Resealed> {
  const done: Resealed = { table: kind.table, resealed: 0, current: 0, unopened: [] };
  let rows = 0;
  for (let page = await listPage(pool, kind, null); page.length > 0; ) {
    for (const row of page) {
      const outcome = await resealRow(pool, kind, row, keys);
      if (typeof outcome === 'object') done.unopened.push(outcome);
      else if (outcome !== 'gone') done[outcome] += 1;
    }
    rows += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < pageRows) break;
    onPage(kind.table, rows);
    page = await listPage(pool, kind, last.ids);
  }
  return done;
}

async function resealRow(
  pool: Pool,
  kind: SealedKind,
  { ids, sealed }: SealedRow,
  keys: SealingKeys,
): Promise<'resealed' | 'current' | 'gone' | UnopenedRow> {
  for (let was: Buffer | null = sealed; was !== null; was = await findSealed(pool, kind, ids)) {
    const text = sealAgain(kind, { ids, sealed: was }, keys);
    if (!Buffer.isBuffer(text)) return text;
    if (await swap(pool, kind, ids, was, text)) return 'resealed';
  }
  return 'gone';
}

/**
 * Returns the new text of a row. A row under the newest version is unsealed as well: this finds a
 * key that was replaced under its own version.
 */
function sealAgain(kind: SealedKind, { ids, sealed }: SealedRow, keys: SealingKeys): Buffer | 'current' | UnopenedRow {
  try {
    const row = kind.rowOf(ids);
    const resealed = reseal(sealed, row, keys);
    if (resealed === null) unseal(sealed, row, keys);
    return resealed ?? 'current';
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
    return { ids, reason: error.reason, version: error.version };
  }
}

/** Lists the next rows of a kind by its key, after `after`. */
async function listPage(pool: Pool, kind: SealedKind, after: SealedIds | null): Promise<SealedRow[]> {
  const ids = Object.entries(kind.ids).map(([id, column]) => `'${id}', ${column}`);
  const { columns, values } = keyOf(kind, after ?? {});
  const isAfter = after === null ? '' : `and (${columns}) > (${numbered(values, 2)})`;
  const { rows } = await pool.query<SealedRow>(
    `select json_build_object(${ids}) as ids, ${kind.column} as sealed from ${kind.table}
     where ${isSealedSql(kind)} ${isAfter} order by ${columns} limit $1`,
    [pageRows, ...(after === null ? [] : values)],
  );
  return rows;
}

/** Replaces a row's sealed text; false when it is not what it was. */
async function swap(pool: Pool, kind: SealedKind, ids: SealedIds, was: Buffer, sealed: Buffer): Promise<boolean> {
  const { columns, values } = keyOf(kind, ids);
  const { rowCount } = await pool.query(
    `update ${kind.table} set ${kind.column} = $1
     where (${columns}) = (${numbered(values, 3)}) and ${kind.column} = $2`,
    [sealed, was, ...values],
  );
  return rowCount === 1;
}

/** Returns the sealed text of a row; null when the row is gone or has expired. */
async function findSealed(pool: Pool, kind: SealedKind, ids: SealedIds): Promise<Buffer | null> {
  const { columns, values } = keyOf(kind, ids);
  const { rows } = await pool.query<{ sealed: Buffer }>(
    `select ${kind.column} as sealed from ${kind.table}
     where (${columns}) = (${numbered(values, 1)}) and ${isSealedSql(kind)}`,
    values,
  );
  return rows[0]?.sealed ?? null;
}

function keyOf({ key, ids: columns }: SealedKind, ids: SealedIds): { columns: string; values: unknown[] } {
  return { columns: key.map((id) => columns[id]).join(', '), values: key.map((id) => ids[id]) };
}

const numbered = (values: unknown[], first: number): string => values.map((_, index) => `$${first + index}`).join(', ');
