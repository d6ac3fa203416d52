/** One use of a key, as a line of the activity log. `status` and `code` are those of the answer, `code` null when it was none of refusal. */
export interface KeyUse {
  /** UUID version 7; also the answer's `Request-Id`. */
  id: string;
  organizationId: string;
  personId: string;
  keyId: string;
  /** `api.` and the operation, or `api.none` for a request that reaches no read. */
  action: string;
  status: number;
  code: string | null;
  /** The client's IP address, or null when it is not known. */
  address: string | null;
}

/**
 * Records many uses at once. `$1`…`$8` are arrays of equal length, one per column: ids, organizations, people, keys, actions,
 * statuses, codes, addresses. Times are the insert's own. One statement for all that gathered while the last one was under way
 * costs about a tenth of a statement each.
 */
export const recordKeyUsesSql = /* sql */ `
  insert into api.activity (id, at, organization_id, person_id, key_id, action, status, code, address)
  select u.id, now(), u.organization_id, u.person_id, u.key_id, u.action, u.status, u.code, u.address
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::smallint[], $7::text[], $8::inet[])
    as u (id, organization_id, person_id, key_id, action, status, code, address)`;

/**
 * Adds requests that brought a key to the console to the key's line of the minute. `$1` fingerprints, `$2` minutes,
 * `$3` counts, `$4` addresses of the last request of each, arrays of equal length.
 */
export const recordKeysAtConsoleSql = /* sql */ `
  select api.record_keys_at_console($1::bytea[], $2::timestamptz[], $3::integer[], $4::inet[])`;

/** Adds refused calls (429) to their key's line of the minute. `$1` fingerprints, `$2` minutes, `$3` counts, arrays of equal length. */
export const recordRefusalsSql = /* sql */ `select api.record_refusals($1::bytea[], $2::timestamptz[], $3::integer[])`;
