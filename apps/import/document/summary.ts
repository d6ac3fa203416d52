import type { Client } from 'pg';

/** Writes one audit entry for each changed organization: counts by kind, and the file's SHA-256 (hexadecimal). */
export async function recordImportEntries(client: Client, entry: { action: string; sha256: string }): Promise<void> {
  await client.query(
    `select record_import_entry(c.organization_id, $1, jsonb_build_object('sha256', $2::text, 'changes',
       jsonb_object_agg(c.kind, c.changes order by c.kind)))
     from (
       select organization_id, kind, json_object_agg(change, rows order by change) as changes
       from import_change group by organization_id, kind
     ) as c
     group by c.organization_id
     order by c.organization_id`,
    [entry.action, entry.sha256],
  );
}

/** Returns how many grants of the document lie ahead, and when the first of them begins; undefined for none. */
export async function findAccessAhead(client: Client): Promise<{ grants: number; beginsOn: string } | undefined> {
  const { rows } = await client.query<{ grants: number; since: Date | null }>(
    `select count(*)::integer as grants, min(since) as since from staged_grant where status = 'scheduled'`,
  );
  const [found] = rows;
  return found?.since ? { grants: found.grants, beginsOn: found.since.toISOString() } : undefined;
}

export interface ImportedOrganization {
  id: string;
  name: string;
  /** The first active owner, or null. A dry run reads the one before the import. */
  ownerUserId: string | null;
}

/** Lists the organizations of the document in its order. */
export async function listImportedOrganizations(client: Client): Promise<ImportedOrganization[]> {
  const { rows } = await client.query(
    `select o.id, o.name, (
       select m.person_id
       from membership m
       join membership_role mr on mr.organization_id = m.organization_id and mr.person_id = m.person_id
       join role r on r.id = mr.role_id and r.organization_id is null and r.key = 'owner'
       left join staged_member s on s.organization_id = m.organization_id and s.user_id = m.person_id
       where m.organization_id = o.id and m.status = 'active'
       order by s.position nulls last, m.person_id
       limit 1
     ) as "ownerUserId"
     from staged_organization o
     order by o.position`,
  );
  return rows;
}
