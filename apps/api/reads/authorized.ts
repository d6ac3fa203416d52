import type { Scope } from '#domain/contract/scopes.ts';

/**
 * The result of a read's statement for its key: the first condition that is met, in this order;
 * `ok` when none is. `malformed`: the request named no possible organization.
 */
export type Decision =
  | 'revoked'
  | 'expired'
  | 'address_not_allowed'
  | 'malformed'
  | 'scope_missing'
  | 'no_organization'
  | 'other_organization'
  | 'creator_left'
  | 'creator_inactive'
  | 'creator_not_permitted'
  | 'ok';

/** A key that a statement found. `expiresAt` is ISO 8601 or null. */
export interface KeyRow {
  keyId: string;
  organizationId: string;
  expiresAt: string | null;
  decision: Decision;
}

/**
 * The row of a read; there is none when no key has the fingerprint. `body` is null unless the
 * decision is `ok` and the body is small.
 */
export interface AuthorizedRow extends KeyRow {
  /** The read's index in the statement, from 0. */
  index: number;
  body: string | null;
}

export interface ReadParameters {
  /** The key's fingerprints, one per pepper in use. At most one of them belongs to a key. */
  fingerprints: readonly Buffer[];
  /** The organization of the path; null when the request names no possible one. */
  organizationId: string | null;
  /** The client's IP address; null when it is not known. */
  address: string | null;
}

/** The SQL of one read's body, of which its two statements are composed. */
export interface BodySql {
  scope: Scope;
  /** A select of one JSON value, in which `request.organization_id` is the organization. */
  body: string;
  /** The views of `api` whose rows of an organization the body lists. Few rows make a small body. */
  lists: readonly string[];
}

/** A list of up to this many rows is small: a row takes about 220 bytes. */
const maxSmallRows = 256;
/** The most bytes of a body that may share a statement and is sent in one piece. */
export const maxSmallBytes = 65_536;

/**
 * Wraps the SQL of a body with the key's authorization, for several reads in one statement and so
 * in one snapshot: a request that starts after a revocation, role change or removal has committed
 * sees it: no decision is cached. `buildParameters` returns its values.
 *
 * `$1` to `$4` are arrays of equal length, one element for each fingerprint of each read: the
 * read's index, the fingerprint, the organization of the path (uuid or null), the client's address
 * (inet or null). Each read has its own decision and row.
 *
 * `case` prevents the body from being made for a rejected key. With `offset 0`, decision and body
 * are computed once, and each key is looked up by its index however few keys there are. Every step
 * is a look-up by primary key or unique index, so the cost does not grow with the region.
 *
 * @param body - an expression of the body as text.
 * @param columns - the columns after the key's, of which `a.body` is the body.
 */
export function authorized(scope: Scope, body: string, columns: string): string {
  return /* sql */ `
    select request.index, k.id as "keyId", k.organization_id as "organizationId",
      api.utc(k.expires_at) as "expiresAt", v.decision, ${columns}
    from unnest($1::integer[], $2::bytea[], $3::uuid[], $4::inet[])
      as request (index, fingerprint, organization_id, address),
    lateral (
      select id, organization_id, expires_at, revoked_at, scopes, creator_id, creator_left_at, allowed_addresses
      from api.key where fingerprint = request.fingerprint
      offset 0
    ) k, lateral (
      select case
        when k.revoked_at is not null then 'revoked'
        when k.expires_at <= now() then 'expired'
        when cardinality(k.allowed_addresses) > 0 and (request.address <<= any (k.allowed_addresses)) is not true
          then 'address_not_allowed'
        when request.organization_id is null then 'malformed'
        when '${scope}' <> all (k.scopes) then 'scope_missing'
        when k.organization_id <> request.organization_id and not exists (select from api.organization o
          where o.id = request.organization_id) then 'no_organization'
        when k.organization_id <> request.organization_id then 'other_organization'
        when k.creator_left_at is not null then 'creator_left'
        when not exists (
          select from api.member m where m.organization_id = request.organization_id and m.person_id = k.creator_id
            and m.status = 'active') then 'creator_inactive'
        when not exists (
          select from api.member_role mr join api.role r on r.id = mr.role_id
          where mr.organization_id = request.organization_id and mr.person_id = k.creator_id
            and '${scope}' = any (r.permissions)) then 'creator_not_permitted'
        else 'ok'
      end as decision
      offset 0
    ) v, lateral (
      select case when v.decision = 'ok' then ${body} end as body
      offset 0
    ) a`;
}

/**
 * Returns the statement of small bodies. A list of many rows is not made: its row is `ok` without a
 * body, after a look at an index. Neither is a body of more than `maxSmallBytes` sent.
 */
export function smallStatement({ scope, body, lists }: BodySql): string {
  const isSmall = lists.map(
    (view) => /* sql */ `not exists (
        select from api.${view} l where l.organization_id = request.organization_id offset ${maxSmallRows})`,
  );
  const small =
    isSmall.length === 0 ? `(${body})::text` : `case when ${isSmall.join(' and ')} then (${body})::text end`;
  return authorized(scope, small, `case when octet_length(a.body) <= ${maxSmallBytes} then a.body end as body`);
}

/** Returns `$1` to `$4` of a statement for these reads. */
export function buildParameters(reads: readonly ReadParameters[]): unknown[] {
  const indexes: number[] = [];
  const repeated: Buffer[] = [];
  const organizations: (string | null)[] = [];
  const addresses: (string | null)[] = [];
  for (const [index, { fingerprints, organizationId, address }] of reads.entries())
    for (const fingerprint of fingerprints) {
      indexes.push(index);
      repeated.push(fingerprint);
      organizations.push(organizationId);
      addresses.push(address);
    }
  return [indexes, repeated, organizations, addresses];
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
