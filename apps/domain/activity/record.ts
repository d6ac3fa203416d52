import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/statement.ts';

/**
 * An entry of the activity log other than a read. `personId` null: an operator. `detail` contains
 * ids and key prefixes, never a key.
 */
interface ActivityLine {
  organizationId: string;
  personId: string | null;
  keyId?: string | null;
  action: string;
  /** The client's IP address, if known. */
  address?: string | null;
  /** The cluster object on whose behalf the Kubernetes operator acts; null for any other caller. */
  managedBy?: string | null;
  detail?: Record<string, unknown>;
}

/**
 * Records an action in the transaction of the change. The database generates the id, so that
 * actions of one transaction, which share its time, keep their order.
 */
export async function recordActivity(tx: EntityManager, line: ActivityLine): Promise<void> {
  const { organizationId, personId, keyId = null, address = null, managedBy = null, action } = line;
  const detail = managedBy === null ? (line.detail ?? null) : { ...line.detail, managedBy };
  await query(tx)`
    insert into activity (organization_id, person_id, key_id, action, address, detail)
    values (${organizationId}, ${personId}, ${keyId}, ${action}, ${address}::inet,
      ${detail === null ? null : JSON.stringify(detail)}::jsonb)`;
}
