import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import type { Visitor } from './types.ts';

/**
 * Something a person did with their own sign-in, told in the log of every organization they have not left: each of them trusts it.
 * `detail` holds kinds, names of factors and ids, never a password, code, token or address that was tried.
 */
export async function recordPersonActivity(
  tx: EntityManager,
  line: { personId: string; action: string; visitor: Visitor | null; detail?: Record<string, unknown> },
): Promise<void> {
  const { personId, action, visitor, detail = null } = line;
  await sql`
    insert into activity (organization_id, person_id, action, address, detail)
    select m.organization_id, m.person_id, ${action}, ${visitor?.address ?? null}::inet, ${detail === null ? null : JSON.stringify(detail)}::jsonb
    from membership m where m.person_id = ${personId} and m.status <> 'left'
    order by m.organization_id`.execute(tx.getKysely());
}
