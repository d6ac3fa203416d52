import { sql } from 'kysely';
import type { Authority, ClusterObject } from '../access/authority.ts';
import { DomainError } from '../contract/domain-error.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Transaction } from '../db/database.ts';

/** An entry of the audit log other than a read. `detail` contains ids and key prefixes, never a key. */
interface NewAuditEntry {
  organizationId: string;
  by: Authority | ClusterObject;
  keyId?: string;
  action: string;
  detail?: Record<string, unknown>;
}

/**
 * Records an action in the transaction of the change, by the function of its writer (migration
 * 0012). The database generates the id, so that actions of one transaction, which share its time,
 * keep their order.
 *
 * @throws DomainError `not_an_active_member` when the session of the person or their membership has
 * ended while the request ran, for example by a removal that waits for this transaction.
 * @throws an error of PostgreSQL (`audit_entry_writer`) when another writer may not write this.
 */
export async function recordAuditEntry(tx: Transaction, entry: NewAuditEntry): Promise<void> {
  const { organizationId, by, keyId = null, action } = entry;
  const detail = entry.detail === undefined ? null : JSON.stringify(entry.detail);
  if (by === 'orgctl')
    await tx.query(sql`
      select record_orgctl_entry(${organizationId}::uuid, ${keyId}::uuid, ${action}, ${detail}::jsonb)`);
  else if ('objectUid' in by)
    await tx.query(sql`
      select record_object_entry(${organizationId}::uuid, ${action},
        ${JSON.stringify({ ...entry.detail, managedBy: by.objectName })}::jsonb)`);
  else
    await tx
      .query(sql`
      select record_console_entry(${organizationId}::uuid, ${by.personId}, ${keyId}::uuid, ${action},
        ${by.address ?? null}::inet, ${detail}::jsonb)`)
      .catch((error: unknown) => {
        throw brokenConstraint(error) === 'audit_entry_writer' ? accessEnded() : error;
      });
}

const accessEnded = () =>
  new DomainError('not_an_active_member', 'Your session or your membership has ended meanwhile. Sign in again.');
