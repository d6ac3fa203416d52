/** Claims about `$1` entries to stream, for `$2` seconds; `StreamedEntry`s, none when another has. */
export const claimAuditStreamSql = /* sql */ `
  select c.up_to as "upTo", c.id, c.at, c.organization_id as "organizationId", c.person_id as "personId",
    c.key_id as "keyId", c.action, c.status, c.code, c.address, c.count, c.object_ids as "objectIds"
  from claim_audit_stream($1, $2) c`;

/** Records that the log system accepted the entries of a claim. `$1` the `upTo` of its entries. */
export const recordAuditStreamedSql = /* sql */ `select record_audit_streamed($1)`;

/** An entry as it is streamed: ids, codes and addresses, no name. */
export interface StreamedEntry {
  /** The transaction that the claim ends before, as text. */
  upTo: string;
  id: string;
  /** ISO, UTC, microseconds. */
  at: string;
  organizationId: string;
  personId: string | null;
  keyId: string | null;
  action: string;
  status: number | null;
  code: string | null;
  address: string | null;
  count: number;
  objectIds: Record<string, string> | null;
}
