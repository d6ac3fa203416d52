import { Membership } from '../access/membership.entity.ts';
import { validKeysPerOrganization } from '../contract/limits.ts';
import type { Transaction } from '../db/database.ts';
import { shareLock } from '../db/locks.ts';
import { ApiKey } from './api-key.entity.ts';

/**
 * Makes a change of the creator's membership wait until the transaction ends, and waits for one
 * that is under way: a key created while its creator leaves would otherwise be missed by the
 * trigger that ends their keys.
 */
export async function lockMembership(tx: Transaction, organizationId: string, personId: string): Promise<void> {
  await tx.findOne(Membership, { organizationId, personId }, shareLock);
}

/** Frees numbers of expired keys. Returns the lowest free one, or null. Call it under `lockOrganization`. */
export async function findFreeNumber(tx: Transaction, organizationId: string, now: Date): Promise<number | null> {
  const keys = await tx.find(ApiKey, { organizationId, number: { $ne: null } });
  for (const key of keys) key.freeNumber(now);
  await tx.flush(); // before another key takes one of them
  const used = new Set(keys.map(({ number }) => number));
  for (let number = 1; number <= validKeysPerOrganization; number += 1) if (!used.has(number)) return number;
  return null;
}
