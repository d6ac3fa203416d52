import pg, { type Pool } from 'pg';
import type { Ends } from '#runtime/flow/budget.ts';
import { runForClient } from '#runtime/run-for-client.ts';
import type { Endpoint } from './endpoints.ts';
import { authorized, type BodySql, buildParameters, type KeyRow, type ReadParameters } from './reads/authorized.ts';

/** Bytes of a chunk: what is written to a socket at a time, and by which its progress is measured. */
export const chunkBytes = 65_536;

/**
 * A row of a large body. `bytes` is its length in UTF-8 and `etag` its ETag; both null unless the
 * decision is `ok`, and `etag` also when the body is too long. `number` and `chunk` are null in the
 * only row without a chunk.
 */
interface ChunkRow extends KeyRow {
  bytes: number | null;
  etag: string | null;
  /** The chunk's index in the body, from 0. */
  number: number | null;
  chunk: Buffer | null;
}

/**
 * Returns the statement of a large body, in chunks of `chunkBytes`. One statement returns decision,
 * ETag and chunks, so they are of one snapshot. `$5` is the most bytes of a body: a longer
 * one stays in the database, so that a process never receives what it has no memory for. `$6`
 * contains the ETags (text[]) of bodies that are not needed, null for all: a body with one of these
 * gets no chunks.
 *
 * A chunk may end within a character. Its bytes therefore travel as characters of Latin-1, in a
 * column whose type no other column has. With `offset 0`, body, bytes and ETag are computed once; an
 * order would write the body to a file, so the reader sorts by `number`.
 */
function largeStatement({ scope, body }: BodySql): string {
  const columns = 'octet_length(a.body) as bytes, case when octet_length(a.body) <= $5 then a.body end as body';
  return /* sql */ `
    select r."keyId", r."organizationId", r."expiresAt", r.decision, r.bytes, tag.etag, c.number, c.chunk
    from (${authorized(scope, `(${body})::text`, columns)} offset 0) r,
    lateral (select convert_to(r.body, 'UTF8') as content offset 0) utf8,
    lateral (
      select '"' || left(translate(encode(sha256(utf8.content), 'base64'), '+/', '-_'), 22) || '"' as etag
      offset 0
    ) tag
    left join lateral (
      select n as number,
        convert_from(substr(utf8.content, n * ${chunkBytes} + 1, ${chunkBytes}), 'LATIN1')::varchar as chunk
      from generate_series(0, (r.bytes - 1) / ${chunkBytes}) n
      where r.body is not null and tag.etag <> all ($6::text[])
    ) c on true`;
}

/** A large body. It has no chunks when it is too long, not authorized, or not needed. */
export interface ChunkedBody {
  row: Omit<ChunkRow, 'number' | 'chunk'>;
  chunks: Buffer[];
}

/** The type of the column `chunk`, and of no other column of the statement. */
const varchar = 1_043;
const latin1ToBytes = (text: string): Buffer => Buffer.from(text, 'latin1');

/**
 * Turns each chunk into bytes as it arrives. As one row, a body of 26 MB was one string in one
 * iteration of the event loop, which took up to 31 ms.
 */
const chunkTypes = {
  getTypeParser: (type: number, format?: 'text' | 'binary') =>
    type === varchar ? latin1ToBytes : pg.types.getTypeParser(type, format as 'text'),
} as pg.CustomTypesConfig;

/**
 * Reads a large body in chunks. Null: no key has the fingerprint.
 *
 * @param responses - end the statement when all of their clients have disconnected.
 * @param maxBytes - of the body.
 * @param unchanged - ETags of bodies that are not needed; null: all.
 * @throws ClientGoneError, or the error of the statement.
 */
export async function readInChunks(
  pool: Pool,
  { endpoint, ...read }: ReadParameters & { endpoint: Endpoint },
  responses: Ends,
  maxBytes: number,
  unchanged: readonly string[] | null,
): Promise<ChunkedBody | null> {
  const query = {
    name: `${endpoint.operationId}InChunks`,
    text: largeStatement(endpoint),
    values: [...buildParameters([read]), maxBytes, unchanged],
    types: chunkTypes,
  };
  const { rows } = await runForClient(responses, () => pool.query<ChunkRow>(query));
  const [row] = rows;
  if (row === undefined) return null;
  const chunks: Buffer[] = [];
  for (const { number, chunk } of rows) if (number !== null && chunk !== null) chunks[number] = chunk;
  return { row, chunks };
}
