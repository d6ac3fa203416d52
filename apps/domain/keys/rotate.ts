import { type Authority, findPersonId } from '../access/authority.ts';
import { keyRotationOverlapMaxDays } from '../contract/limits.ts';
import type { Scope } from '../contract/scopes.ts';
import type { Database, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { ApiKey } from './api-key.entity.ts';
import { assertMayCreate, type CreatedKey, insertKey } from './create.ts';
import { KeyError } from './errors.ts';
import type { KeySecrets } from './key.ts';
import { findFreeNumber } from './numbers.ts';

export interface RotateKey {
  organizationId: string;
  keyId: string;
  /** The successor acts for this person, who must hold all of the key's scopes; by an operator, for its creator. */
  by: Authority;
  /** How long both keys work, 0 to 7 days. */
  overlapSeconds: number;
  /** When the successor expires; null: until revoked. */
  expiresAt: Date | null;
}

/** The successor, and when its predecessor stops working. */
export interface RotatedKey extends CreatedKey {
  predecessorEndsAt: Date;
}

/**
 * Replaces a valid key by a successor with the same scopes, name, description and allowed addresses.
 * During the overlap both work, and each takes a number. When 25 keys are valid there is no number for
 * both: the old key stops at once, and `predecessorEndsAt` says so.
 *
 * @throws KeyError as `createKey` does, and when the key is not valid or the overlap is longer
 * than 7 days.
 */
export async function rotateKey(
  database: Database,
  input: RotateKey,
  secrets: KeySecrets,
  now: () => Date = () => new Date(),
): Promise<RotatedKey> {
  const { organizationId, keyId, by, overlapSeconds, expiresAt } = input;
  if (!(overlapSeconds >= 0 && overlapSeconds <= keyRotationOverlapMaxDays * 86_400)) {
    throw new KeyError('overlap_too_long', `Both keys can work for 0 to ${keyRotationOverlapMaxDays} days.`);
  }
  return database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const at = now();
    const { key: old, number: oldNumber } = await getValidKey(tx, organizationId, keyId, at);
    const successor = {
      organizationId,
      by,
      creatorId: findPersonId(by) ?? old.creatorId,
      scopes: old.scopes as Scope[],
      label: old.label,
      description: old.description,
      allowedAddresses: old.allowedAddresses,
      expiresAt,
    };
    await assertMayCreate(tx, successor, at);
    const freeNumber = overlapSeconds > 0 ? await findFreeNumber(tx, organizationId, at) : null;
    if (freeNumber === null) {
      old.revoke(at);
    } else {
      old.expireBy(new Date(at.getTime() + overlapSeconds * 1000));
    }
    await tx.flush(); // frees the number before the successor takes it
    const created = await insertKey(
      tx,
      { ...successor, number: freeNumber ?? oldNumber, predecessorId: keyId, createdAt: at },
      secrets,
      'key.rotate',
    );
    return { ...created, predecessorEndsAt: freeNumber === null ? at : (old.expiresAt ?? at) };
  });
}

/** Returns a valid key with its number. @throws KeyError `no_such_key` or `key_not_live` */
export async function getValidKey(tx: Transaction, organizationId: string, keyId: string, at: Date) {
  const key = await tx.findOne(ApiKey, { id: keyId, organizationId });
  if (key === null) throw new KeyError('no_such_key', 'The organization has no such key.');
  const { number } = key;
  if (number === null || key.stateAt(at) !== 'valid') {
    throw new KeyError('key_not_live', 'The key is revoked, expired or inactive; create a new one instead.');
  }
  return { key, number };
}
