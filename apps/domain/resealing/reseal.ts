import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
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
  db: Queryable,
  keys: SealingKeys,
  onPage: (table: SealedTable, rows: number) => void = () => {},
): Promise<Resealed[]> {
  const all: Resealed[] = [];
  for (const kind of sealedKinds) all.push(await resealKind(db, kind, keys, onPage));
  return all;
}

async function resealKind(
  db: Queryable,
  kind: SealedKind,
  keys: SealingKeys,
  onPage: (table: SealedTable, rows: number) => void,
): Promise<Resealed> {
  const done: Resealed = { table: kind.table, resealed: 0, current: 0, unopened: [] };
  let rows = 0;
  for (let page = await listPage(db, kind, null); page.length > 0; ) {
    for (const row of page) {
      const outcome = await resealRow(db, kind, row, keys);
      if (typeof outcome === 'object') done.unopened.push(outcome);
      else if (outcome !== 'gone') done[outcome] += 1;
    }
    rows += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < pageRows) break;
    onPage(kind.table, rows);
    page = await listPage(db, kind, last.ids);
  }
  return done;
}

async function resealRow(
  db: Queryable,
  kind: SealedKind,
  { ids, sealed }: SealedRow,
  keys: SealingKeys,
): Promise<'resealed' | 'current' | 'gone' | UnopenedRow> {
  for (let was: Buffer | null = sealed; was !== null; was = await findSealed(db, kind, ids)) {
    const text = sealAgain(kind, { ids, sealed: was }, keys);
    if (!Buffer.isBuffer(text)) return text;
    if (await swap(db, kind, ids, was, text)) return 'resealed';
  }
  return 'gone';
}

/**
 * Returns the new text of a row. A row under the newest version is unsealed as well: this finds a
 * key that was replaced under its own version.
 */
function sealAgain(kind: SealedKind, { ids, sealed }: SealedRow, keys: SealingKeys): Buffer | 'current' | UnopenedRow {
  try {
    const row = kind.nameRow(ids);
    const resealed = reseal(sealed, row, keys);
    if (resealed === null) unseal(sealed, row, keys);
    return resealed ?? 'current';
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
    return { ids, reason: error.reason, version: error.version };
  }
}

/** Lists the next rows of a kind by its key, after `after`. */
async function listPage(db: Queryable, kind: SealedKind, after: SealedIds | null): Promise<SealedRow[]> {
  const ids = Object.entries(kind.ids).map(([id, column]) => sql`${sql.lit(id)}, ${sql.ref(column)}`);
  const { columns, values } = buildPrimaryKey(kind, after ?? {});
  return db.query(sql<SealedRow>`
    select json_build_object(${sql.join(ids)}) as ids, ${sql.ref(kind.column)} as sealed from ${sql.table(kind.table)}
    where ${sql.raw(isSealedSql(kind))} ${after === null ? sql`` : sql`and (${columns}) > (${values})`}
    order by ${columns} limit ${pageRows}`);
}

/** Replaces a row's sealed text; false when it is not what it was. */
async function swap(db: Queryable, kind: SealedKind, ids: SealedIds, was: Buffer, sealed: Buffer): Promise<boolean> {
  const { columns, values } = buildPrimaryKey(kind, ids);
  const swapped = await db.query(sql`
    update ${sql.table(kind.table)} set ${sql.ref(kind.column)} = ${sealed}
    where (${columns}) = (${values}) and ${sql.ref(kind.column)} = ${was} returning 1`);
  return swapped.length === 1;
}

/** Returns the sealed text of a row; null when the row is gone or has expired. */
async function findSealed(db: Queryable, kind: SealedKind, ids: SealedIds): Promise<Buffer | null> {
  const { columns, values } = buildPrimaryKey(kind, ids);
  const [row] = await db.query(sql<{ sealed: Buffer }>`
    select ${sql.ref(kind.column)} as sealed from ${sql.table(kind.table)}
    where (${columns}) = (${values}) and ${sql.raw(isSealedSql(kind))}`);
  return row?.sealed ?? null;
}

/** Returns the columns of a kind's key, and the values of one row. */
function buildPrimaryKey({ key, ids: columns }: SealedKind, ids: SealedIds) {
  return {
    columns: sql.join(key.map((id) => sql.ref(columns[id] ?? id))),
    values: sql.join(key.map((id) => ids[id])),
  };
}
