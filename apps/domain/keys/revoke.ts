import { type Authority, findPermissions } from '../access/authority.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database, Queryable } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { ApiKey } from './api-key.entity.ts';
import { KeyError } from './errors.ts';

/**
 * Revokes a key: every request that starts after the commit is rejected. Revoking it again changes
 * nothing and is not recorded.
 *
 * @throws KeyError when the person may not manage keys, or the organization has no such key.
 */
export async function revokeKey(
  database: Database,
  input: { organizationId: string; keyId: string; by: Authority },
  now: () => Date = () => new Date(),
): Promise<void> {
  const { organizationId, keyId, by } = input;
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    await assertMayManageKeys(tx, organizationId, by);
    const key = await tx.findOne(ApiKey, { id: keyId, organizationId });
    if (key === null) throw new KeyError('no_such_key', 'The organization has no such key.');
    if (key.revokedAt !== null) return;
    key.revoke(now());
    await recordAuditEntry(tx, { organizationId, by, keyId, action: 'key.revoke', detail: { hint: key.hint } });
  });
}

/**
 * Lets an operator pass, and an active member who holds `org.keys.manage`.
 *
 * @throws KeyError `may_not_manage_keys`
 */
export async function assertMayManageKeys(db: Queryable, organizationId: string, by: Authority): Promise<void> {
  if (by === 'orgctl') return;
  const permissions = await findPermissions(db, organizationId, by.personId);
  if (!permissions?.has('org.keys.manage')) {
    throw new KeyError(
      'may_not_manage_keys',
      'Only an active member with a role that may manage keys (org.keys.manage) can do this.',
    );
  }
}
