import type { Authority } from '../access/authority.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { KeyError } from './errors.ts';
import { type KeyFields, readKeyFields } from './fields.ts';
import { assertMayManageKeys } from './revoke.ts';
import { getValidKey } from './rotate.ts';

/** A change of a valid key. A field that is absent does not change. */
export interface ChangeKey extends KeyFields {
  organizationId: string;
  keyId: string;
  by: Authority;
}

const changeable = ['label', 'description', 'allowedAddresses'] as const;

/**
 * Changes a valid key, in one transaction with its audit entry, which has the old and the new name
 * and addresses. Every request that starts after the commit is judged by the new addresses. A change
 * to what the key has already is not recorded.
 *
 * @throws KeyError when the person may not manage keys, the key is not valid, a field is rejected, or none is given.
 */
export async function changeKey(
  database: Database,
  input: ChangeKey,
  now: () => Date = () => new Date(),
): Promise<void> {
  const { organizationId, keyId, by } = input;
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    await assertMayManageKeys(tx, organizationId, by);
    const { key } = await getValidKey(tx, organizationId, keyId, now());
    const fields = await readKeyFields(tx, input);
    const given = changeable.filter((field) => fields[field] !== undefined);
    if (given.length === 0)
      throw new KeyError('nothing_to_change', 'Change the name, the description or the allowed IP addresses.');
    const changed = given.filter((field) => String(fields[field]) !== String(key[field]));
    if (changed.length === 0) return;
    const detail = {
      hint: key.hint,
      changed,
      ...(changed.includes('label') ? { renamed: { from: key.label, to: fields.label } } : {}),
      ...(changed.includes('allowedAddresses')
        ? { allowedAddresses: fields.allowedAddresses, allowedBefore: key.allowedAddresses }
        : {}),
    };
    Object.assign(key, fields);
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, keyId, action: 'key.change', detail });
  });
}
