/**
 * One use of a key, as an entry of the audit log. The database sets time, organization and person.
 * `status` and `code` are those of the response; `code` is null without an error.
 */
export interface KeyUse {
  /** UUID version 7; also the response's `Request-Id`. */
  id: string;
  keyId: string;
  /** `api.` and the operation, or `api.none` for a request to no read. */
  action: string;
  status: number;
  code: string | null;
  /** The client's IP address, or null when it is not known. */
  address: string | null;
}

/**
 * Records many uses at once, all or none. `$1`…`$6` are arrays of equal length, one per column:
 * ids, keys, actions, statuses, codes, addresses. One statement for all uses that arrived during
 * the last one costs about a tenth of a statement each.
 */
export const recordKeyUsesSql = /* sql */ `
  select api.record_key_uses($1::uuid[], $2::uuid[], $3::text[], $4::smallint[], $5::text[], $6::inet[])`;

/** Adds requests to the console to entries of keys: arrays of fingerprints, counts and addresses. */
export const recordKeysAtConsoleSql = /* sql */ `select api.record_keys_at_console($1::bytea[], $2::bigint[],
  $3::inet[])`;

/**
 * Adds rejected calls (429) to their key's entry of this minute. `$1` fingerprints, `$2` counts,
 * arrays of equal length.
 */
export const recordRejectedCallsSql = /* sql */ `select api.record_rejections($1::bytea[], $2::bigint[])`;
