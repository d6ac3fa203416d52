import pg, { type Pool } from 'pg';
import { authorizedValues, type ChunkRow, type ReadValues } from '#domain/db/statements/authorized.ts';
import type { Endpoint } from './endpoints.ts';

/** A read whose answer came in chunks. */
export interface ChunkedRead {
  row: Omit<ChunkRow, 'number' | 'chunk'>;
  /**
   * In the order of the answer; empty when the answer is too long, not authorized, or needs no
   * body.
   */
  chunks: Buffer[];
}

/** The type of the column `chunk`, and of no other column of the statement. */
const varchar = 1_043;

const latin1ToBytes = (text: string): Buffer => Buffer.from(text, 'latin1');

/**
 * Turns each chunk into bytes as it arrives. As one row, an answer of 26 MB was one string in one
 * turn of the event loop, which took up to 31 ms.
 */
const chunkTypes = {
  getTypeParser: (type: number, format?: 'text' | 'binary') =>
    type === varchar ? latin1ToBytes : pg.types.getTypeParser(type, format as 'text'),
} as pg.CustomTypesConfig;

/**
 * Runs a read alone, on a separate connection, and receives its answer in chunks.
 *
 * @param room - the largest size of the answer in bytes.
 * @param unchanged - tags of answers that need no body; null: all.
 * @returns null when no key has the fingerprint.
 */
export async function readInChunks(
  pool: Pool,
  { chunkStatement }: Endpoint,
  values: ReadValues,
  room: number,
  unchanged: readonly string[] | null,
): Promise<ChunkedRead | null> {
  const query = { ...chunkStatement, values: authorizedValues([values], room).concat([unchanged]), types: chunkTypes };
  const { rows } = await pool.query<ChunkRow>(query);
  const [row] = rows;
  if (row === undefined) return null;
  const chunks: Buffer[] = [];
  for (const { number, chunk } of rows) if (number !== null && chunk !== null) chunks[number] = chunk;
  return { row, chunks };
}
