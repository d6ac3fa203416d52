import type { Scope } from '../../contract/scopes.ts';

/**
 * The result of a read's statement for its key: the first condition that holds, in this order.
 * `malformed`: `$2` was null, because the request named no possible organization.
 */
export type Decision =
  | 'ok'
  | 'revoked'
  | 'expired'
  | 'malformed'
  | 'scope_missing'
  | 'no_organization'
  | 'other_organization'
  | 'maker_left'
  | 'maker_inactive'
  | 'maker_not_permitted';

/** A key that a statement found. `expiresAt` is ISO 8601 or null. */
export interface KeyRow {
  keyId: string;
  organizationId: string;
  expiresAt: string | null;
  decision: Decision;
}

/**
 * The row of a read; there is none when no key has the fingerprint. `bytes` is the length of the
 * answer in UTF-8, null unless the decision is `ok`. `body` is null then too, and when the answer
 * is longer than the caller has room for.
 */
export interface AuthorizedRow extends KeyRow {
  /** The read's index in the statement, from 0. */
  place: number;
  bytes: number | null;
  body: string | null;
  /** Milliseconds from the statement's start until this row was computed. */
  elapsedMs: number;
}

/** The values of one read in its statement. */
export interface ReadValues {
  /** The key's fingerprints, one per pepper in use. At most one of them belongs to a key. */
  fingerprints: readonly Buffer[];
  /** The organization of the path; null when the request names no possible one. */
  organizationId: string | null;
}

/**
 * Wraps the SQL of one answer with the key's authorization, for several reads in one statement and
 * so in one snapshot: a request that starts after a revocation, role change or removal has
 * committed sees it, and nothing is cached. `authorizedValues` returns its values.
 *
 * `$1` to `$3` are arrays of equal length, one element for each fingerprint of each read: the
 * read's index, the fingerprint, the organization of the path (uuid or null). `$4` is the most
 * bytes of an answer: a longer one stays in the database, so that a process never receives what it
 * has no memory for. Each read has its own decision and row.
 *
 * `body` is a select of one JSON value, in which `$2` is the organization; `case` prevents it from
 * running for a refused key. With `offset 0`, result and answer are computed once, and each key is
 * looked up by its index however few keys there are. Every step is a look-up by primary key or
 * unique index, so the cost does not grow with the region.
 */
export function authorized(scope: Scope, body: string): string {
  return /* sql */ `
    select q.place, k.id as "keyId", k.organization_id as "organizationId", api.utc(k.expires_at) as "expiresAt",
      v.decision, octet_length(a.body) as bytes, case when octet_length(a.body) <= $4 then a.body end as body,
      (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000)::integer as "elapsedMs"
    from unnest($1::integer[], $2::bytea[], $3::uuid[]) as q (place, fingerprint, organization_id),
    lateral (
      select id, organization_id, expires_at, revoked_at, scopes, maker_id, maker_left_at
      from api.key where fingerprint = q.fingerprint
      offset 0
    ) k, lateral (
      select case
        when k.revoked_at is not null then 'revoked'
        when k.expires_at <= now() then 'expired'
        when q.organization_id is null then 'malformed'
        when '${scope}' <> all (k.scopes) then 'scope_missing'
        when k.organization_id <> q.organization_id and not exists (select from api.organization o
          where o.id = q.organization_id) then 'no_organization'
        when k.organization_id <> q.organization_id then 'other_organization'
        when k.maker_left_at is not null then 'maker_left'
        when not exists (
          select from api.member m where m.organization_id = q.organization_id and m.person_id = k.maker_id
            and m.status = 'active') then 'maker_inactive'
        when not exists (
          select from api.member_role mr join api.role r on r.id = mr.role_id
          where mr.organization_id = q.organization_id and mr.person_id = k.maker_id
            and '${scope}' = any (r.permissions)) then 'maker_not_permitted'
        else 'ok'
      end as decision
      offset 0
    ) v, lateral (
      select case when v.decision = 'ok' then (${body.replaceAll('$2', 'q.organization_id')})::text end as body
      offset 0
    ) a`;
}

/** Bytes of a chunk: what is written to a socket at a time, and by which its progress is judged. */
export const chunkBytes = 65_536;

/** A row of a read in chunks. `number` and `chunk` are null in the only row without a body. */
export interface ChunkRow extends Omit<AuthorizedRow, 'body'> {
  /** The answer's entity tag; null when there is no answer, or when it is too long. */
  etag: string | null;
  /** The chunk's index in the answer, from 0. */
  number: number | null;
  chunk: Buffer | null;
}

/**
 * Wraps the SQL of one answer as `authorized` does, and divides it into chunks of `chunkBytes`. One
 * statement returns decision, entity tag and chunks, so they are of one snapshot. `$5` contains the
 * tags (text[]) of answers that need no body, null for all: an answer with one of these gets no
 * chunks.
 *
 * A chunk may end within a character. Its bytes therefore travel as characters of Latin-1, in a
 * column whose type no other column has. With `offset 0`, answer, bytes and tag are computed once;
 * an order would write the answer to a file, so the reader sorts by `number`.
 */
export function authorizedInChunks(scope: Scope, body: string): string {
  return /* sql */ `
    select r.place, r."keyId", r."organizationId", r."expiresAt", r.decision, r.bytes, r."elapsedMs",
      tag.etag, c.number, c.chunk
    from (${authorized(scope, body)} offset 0) r,
    lateral (select convert_to(r.body, 'UTF8') as content offset 0) utf8,
    lateral (
      select '"' || left(translate(encode(sha256(utf8.content), 'base64'), '+/', '-_'), 22) || '"' as etag
      offset 0
    ) tag
    left join lateral (
      select n as number,
        convert_from(substr(utf8.content, n * ${chunkBytes} + 1, ${chunkBytes}), 'LATIN1')::varchar as chunk
      from generate_series(0, (r.bytes - 1) / ${chunkBytes}) n
      where r.body is not null and tag.etag <> all ($5::text[])
    ) c on true`;
}

/** Returns the values of a statement of `authorized`; `room` is the most bytes of an answer. */
export function authorizedValues(reads: readonly ReadValues[], room: number): unknown[] {
  const rows = reads.flatMap(({ fingerprints, organizationId }, place) =>
    fingerprints.map((print) => ({ place, print, organizationId })),
  );
  return [rows.map((row) => row.place), rows.map((row) => row.print), rows.map((row) => row.organizationId), room];
}

/**
 * Identifies a key of a request to no read (another method, an unknown path), whose use is
 * recorded. `$1` is its fingerprints (bytea[]); the row is a `KeyRow` whose decision is `revoked`,
 * `expired` or `ok`.
 */
export const identifiedKeySql = /* sql */ `
  select k.id as "keyId", k.organization_id as "organizationId", api.utc(k.expires_at) as "expiresAt",
    case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired'
      else 'ok' end as decision
  from api.key k
  where k.fingerprint = any ($1)`;
