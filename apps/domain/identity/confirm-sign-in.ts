import { sql } from 'kysely';
import type { Authority } from '../access/authority.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Transaction } from '../db/database.ts';

/**
 * Confirms a person's sign-in for an organization that they are an active member of, in the
 * transaction that saw them use the organization's own link, or for an operator. The organization's
 * audit log records it. Returns false, and records nothing, when it was confirmed before or
 * there is no such active member who signs in.
 */
export async function confirmSignIn(
  tx: Transaction,
  { organizationId, personId, by }: { organizationId: string; personId: string; by: Authority },
  now: Date,
): Promise<boolean> {
  const source = by === 'orgctl' ? 'orgctl' : 'link';
  const rows = await tx.query(sql`
    insert into sign_in_confirmation (person_id, organization_id, confirmed_at, confirmed_by)
    select m.person_id, m.organization_id, ${now.toISOString()}::timestamptz, ${source}
    from membership m join sign_in i on i.person_id = m.person_id
    where m.organization_id = ${organizationId} and m.person_id = ${personId} and m.status = 'active'
    on conflict do nothing returning person_id`);
  if (rows.length === 0) return false;
  const detail = { memberId: personId, by: source };
  await recordAuditEntry(tx, { organizationId, by, action: 'sign_in.confirm', detail });
  return true;
}
