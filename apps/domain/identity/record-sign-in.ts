import { sql } from 'kysely';
import { isConfirmed } from '../access/console-access.ts';
import type { Database, Transaction } from '../db/database.ts';
import type { Visitor } from './types.ts';

/** Records a failed step of a person's sign-in, in a transaction of its own. */
export const recordFailure = (database: Database, personId: string, visitor: Visitor, step: string): Promise<void> =>
  database.change((tx) => recordPersonEntry(tx, { personId, action: 'sign_in.failure', visitor, detail: { step } }));

/**
 * Records an action on a person's sign-in in the audit log of every organization that has confirmed it,
 * because each of them trusts it. Other organizations record nothing: any address can be invited.
 *
 * `by`: the person, or an operator with orgctl, for whom the entry names no person;
 * `detail.memberId` then identifies the person. `detail` contains kinds, names of factors and ids,
 * and never a password, code, token or address that was tried.
 */
export async function recordPersonEntry(
  tx: Transaction,
  entry: {
    personId: string;
    action: string;
    visitor: Visitor | null;
    detail?: Record<string, unknown>;
    by?: 'person' | 'orgctl';
  },
): Promise<void> {
  const { personId, action, visitor, by = 'person' } = entry;
  const detail = by === 'orgctl' ? { memberId: personId, ...entry.detail } : (entry.detail ?? null);
  const about = sql`${detail === null ? null : JSON.stringify(detail)}::jsonb`;
  const record =
    by === 'orgctl'
      ? sql`record_orgctl_entry(m.organization_id, null, ${action}, ${about})`
      : sql`record_console_entry(m.organization_id, m.person_id, null, ${action},
          ${visitor?.address ?? null}::inet, ${about})`;
  await tx.query(sql`
    select ${record} from membership m where m.person_id = ${personId} and ${isConfirmed()}
    order by m.organization_id`);
}
