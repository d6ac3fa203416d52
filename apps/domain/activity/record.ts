import type { EntityManager } from '@mikro-orm/postgresql';
import { type Authority, askerOf, type ClusterObject } from '../access/authority.ts';
import { query } from '../db/statement.ts';

/** An entry of the log other than a read. `detail` contains ids and key prefixes, never a key. */
interface ActivityLine {
  organizationId: string;
  by: Authority | ClusterObject;
  keyId?: string;
  action: string;
  detail?: Record<string, unknown>;
}

/**
 * Records an action in the transaction of the change. The database generates the id, so that
 * actions of one transaction, which share its time, keep their order.
 */
export async function recordActivity(tx: EntityManager, line: ActivityLine): Promise<void> {
  const { organizationId, by, keyId = null, action } = line;
  const { personId, address, managedBy } = askerOf(by);
  const detail = managedBy === null ? (line.detail ?? null) : { ...line.detail, managedBy };
  await query(tx)`
    insert into activity (organization_id, person_id, key_id, action, address, detail)
    values (${organizationId}, ${personId}, ${keyId}, ${action}, ${address}::inet,
      ${detail === null ? null : JSON.stringify(detail)}::jsonb)`;
}
