import type { Database } from '#domain/db/database.ts';

/** An entry of the log as a test writes it; missing fields are empty, and `at` is now. */
export interface GivenLine {
  orgId: string;
  at?: Date;
  personId?: string | null;
  keyId?: string | null;
  action?: string;
  status?: number | null;
  code?: string | null;
  address?: string | null;
  detail?: Record<string, unknown> | null;
}

/** SQL of an entry's details with the change of a name, which the log keeps apart. */
export const detailWithRename = `detail || jsonb_strip_nulls(jsonb_build_object('renamed', names -> 'renamed'))`;

/** Writes entries as the database's owner; returns their ids in order. */
export async function writeEntries(owner: Database, entries: readonly GivenLine[]): Promise<string[]> {
  const ids: string[] = [];
  for (const entry of entries) {
    const { orgId, at = new Date(), personId = null, keyId = null, action = 'api.getOrg', status = 200 } = entry;
    const { code = null, address = null, detail = null } = entry;
    const { rows } = await owner.pool.query<{ id: string }>(
      `insert into audit_entry (at, organization_id, person_id, key_id, action, status, code, address, detail)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning id`,
      [at, orgId, personId, keyId, action, status, code, address, detail],
    );
    ids.push(rows[0]?.id ?? '');
  }
  return ids;
}
