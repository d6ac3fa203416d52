import type { Scope } from '../../contract/scopes.ts';

/**
 * The result of a read's statement for its key. `malformed`: `$2` was null, so the request named no
 * possible organization. The first condition that holds, in this order, is the result.
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

/**
 * The row of a read's statement; there is none when no key has the fingerprint. `expiresAt` is ISO
 * 8601 or null. `bytes` is the length of the answer in UTF-8, null unless the decision is `ok`;
 * `body` is null then too, and when the answer is longer than the caller has room for.
 */
export interface AuthorizedRow {
  keyId: string;
  organizationId: string;
  expiresAt: string | null;
  decision: Decision;
  bytes: number | null;
  body: string | null;
}

/**
 * Wraps the SQL of one answer with the key's authorization, in one statement and so one snapshot: a
 * request that starts after a revocation, role change or removal has committed sees it, and nothing
 * is cached.
 *
 * `$1` is the key's fingerprints (bytea[], one per pepper in use), `$2` the organization of the
 * path (uuid or null), `$3` the most bytes that the answer may have: a longer one stays in the
 * database, so that a process never receives what it has no memory for. `body` is a select of one
 * JSON value that may use `$2`; `case` keeps it from running for a refused key. `offset 0` keeps
 * result and answer from being computed twice. Every step is a look-up by primary key or unique
 * index, so the cost does not grow with the region.
 */
export function authorized(scope: Scope, body: string): string {
  return /* sql */ `
    select k.id as "keyId", k.organization_id as "organizationId", api.utc(k.expires_at) as "expiresAt", v.decision,
      octet_length(a.body) as bytes, case when octet_length(a.body) <= $3 then a.body end as body
    from api.key k, lateral (
      select case
        when k.revoked_at is not null then 'revoked'
        when k.expires_at <= now() then 'expired'
        when $2::uuid is null then 'malformed'
        when '${scope}' <> all (k.scopes) then 'scope_missing'
        when k.organization_id <> $2 and not exists (select from api.organization o
          where o.id = $2) then 'no_organization'
        when k.organization_id <> $2 then 'other_organization'
        when k.maker_left_at is not null then 'maker_left'
        when not exists (
          select from api.member m where m.organization_id = $2 and m.person_id = k.maker_id
            and m.status = 'active') then 'maker_inactive'
        when not exists (
          select from api.member_role mr join api.role r on r.id = mr.role_id
          where mr.organization_id = $2 and mr.person_id = k.maker_id
            and '${scope}' = any (r.permissions)) then 'maker_not_permitted'
        else 'ok'
      end as decision
      offset 0
    ) v, lateral (select case when v.decision = 'ok' then (${body})::text end as body offset 0) a
    where k.fingerprint = any ($1)`;
}

/**
 * Identifies a key, for a request that reaches no read (another method, an unknown path): its use
 * is recorded all the same. Columns and `$1` are those of a read; the decision is `revoked`,
 * `expired` or `ok`, and `body` always null.
 */
export const identifiedKeySql = /* sql */ `
  select k.id as "keyId", k.organization_id as "organizationId", api.utc(k.expires_at) as "expiresAt",
    case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired'
      else 'ok' end as decision,
    null::int as bytes, null as body
  from api.key k
  where k.fingerprint = any ($1)`;
