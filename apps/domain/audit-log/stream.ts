/** Claims about `$1` rows to stream, for `$2` seconds; `StreamedLine`s, none when another has. */
export const claimActivityStreamSql = /* sql */ `
  select c.up_to as "upTo", c.id, c.at, c.organization_id as "organizationId", c.person_id as "personId",
    c.key_id as "keyId", c.action, c.status, c.code, c.address, c.count, c.object_ids as "objectIds"
  from claim_activity_stream($1, $2) c`;

/** Records that the log system accepted the rows of a claim. `$1` the `upTo` of its rows. */
export const recordActivityStreamedSql = /* sql */ `select record_activity_streamed($1)`;

/** A row as it is streamed: ids, codes and addresses, no name. */
export interface StreamedLine {
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
