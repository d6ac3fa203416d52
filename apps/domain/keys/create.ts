import { randomUUIDv7 } from 'node:crypto';
import { type Authority, findPermissions } from '../access/authority.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { hourMs } from '../contract/durations.ts';
import { keysCreatedPerHour, validKeysPerOrganization } from '../contract/limits.ts';
import type { Scope } from '../contract/scopes.ts';
import type { Database, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { ApiKey } from './api-key.entity.ts';
import { KeyError } from './errors.ts';
import { type KeyFields, readKeyFields } from './fields.ts';
import { fingerprint, generateKey, type KeySecrets, keyHint } from './key.ts';
import { findFreeNumber, lockMembership } from './numbers.ts';

interface NewKeyFields extends KeyFields {
  organizationId: string;
  scopes: readonly Scope[];
  /** The name that its creator gives it. */
  label: string;
  /** Null: valid until revoked. */
  expiresAt: Date | null;
}

/**
 * A key acts for its creator, and can never do more than they can now: for the person who creates
 * it, or for the one whom an operator names. That person needs the scopes, but not the right to manage keys.
 */
type KeyCreator = { by: Exclude<Authority, 'orgctl'> } | { by: 'orgctl'; creatorId: string };

export type CreateKey = NewKeyFields & KeyCreator;

/** A key of which the creator is known. */
interface NewKey extends NewKeyFields {
  by: Authority;
  creatorId: string;
}

/** A new key. `key` is its value: show it once, store it nowhere. */
export interface CreatedKey {
  id: string;
  key: string;
  hint: string;
  expiresAt: Date | null;
}

/**
 * Creates an API key, in one transaction with its audit entry.
 *
 * @param now - the clock, for expiry and creation time.
 *
 * @throws KeyError when its creator is no active member, may not manage keys or lacks a scope,
 * when no scope is given, when the expiry has passed, when a text or an allowed address is rejected,
 * when 25 keys are valid, or when 60 were created within the last hour; the last does not hold for an
 * operator.
 */
export async function createKey(
  database: Database,
  input: CreateKey,
  secrets: KeySecrets,
  now: () => Date = () => new Date(),
): Promise<CreatedKey> {
  return database.change(async (tx) => {
    await lockOrganization(tx, input.organizationId);
    const createdAt = now();
    const key = {
      ...input,
      creatorId: input.by === 'orgctl' ? input.creatorId : input.by.personId,
      ...(await readKeyFields(tx, input)),
    };
    await assertMayCreate(tx, key, createdAt);
    const number = await findFreeNumber(tx, input.organizationId, createdAt);
    if (number === null) {
      throw new KeyError(
        'too_many_keys',
        `The organization has ${validKeysPerOrganization} active keys, which is the maximum. Revoke one first.`,
      );
    }
    return insertKey(tx, { ...key, number, predecessorId: null, createdAt }, secrets, 'key.create');
  });
}

/** Checks what creating and rotating a key both require. Call it under `lockOrganization`. */
export async function assertMayCreate(tx: Transaction, input: NewKey, now: Date): Promise<void> {
  if (input.scopes.length === 0) throw new KeyError('no_scopes', 'Choose at least one permission.');
  if (input.expiresAt !== null && input.expiresAt <= now)
    throw new KeyError('expiry_in_the_past', 'The expiry is in the past. Enter a later time.');
  await lockMembership(tx, input.organizationId, input.creatorId);
  const permissions = await findPermissions(tx, input.organizationId, input.creatorId);
  if (permissions === null)
    throw new KeyError('not_an_active_member', 'The key’s creator is not an active member of the organization.');
  if (input.by !== 'orgctl' && !permissions.has('org.keys.manage')) {
    throw new KeyError('may_not_manage_keys', 'The key’s creator has no role that may manage keys (org.keys.manage).');
  }
  const missing = input.scopes.filter((scope) => !permissions.has(scope));
  if (missing.length > 0)
    throw new KeyError(
      'scope_not_held',
      `The key’s creator doesn’t have ${missing.join(', ')}. A key can have only permissions of its creator.`,
    );
  if (input.by !== 'orgctl') await assertFewNewKeys(tx, input.organizationId, now);
}

/** Without it, rotating a key would give its holder the calls of a new one as often as they want. */
async function assertFewNewKeys(tx: Transaction, organizationId: string, now: Date): Promise<void> {
  const newest = { orderBy: { createdAt: 'desc' }, offset: keysCreatedPerHour - 1, limit: 1 } as const;
  // After the clock was set back, keys of the time ahead are none of the last hour.
  const [oldest] = await tx.find(ApiKey, { organizationId, createdAt: { $lte: now } }, newest);
  const waitMs = oldest === undefined ? 0 : oldest.createdAt.getTime() + hourMs - now.getTime();
  if (waitMs <= 0) return;
  const minutes = Math.ceil(waitMs / 60_000);
  throw new KeyError(
    'too_many_new_keys',
    `The organization has created ${keysCreatedPerHour} keys within an hour, which is the maximum. ` +
      `Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`,
  );
}

/** Writes the row and its audit entry. Find the number under `lockOrganization`. */
export async function insertKey(
  tx: Transaction,
  input: NewKey & { number: number; predecessorId: string | null; createdAt: Date },
  secrets: KeySecrets,
  action: 'key.create' | 'key.rotate',
): Promise<CreatedKey> {
  const key = generateKey(secrets.region, secrets.tagSecrets[0]);
  const pepper = secrets.peppers[0];
  const id = randomUUIDv7();
  const hint = keyHint(key);
  const scopes = [...new Set(input.scopes)];
  const { organizationId, by, creatorId, label, expiresAt, number, predecessorId, createdAt } = input;
  const { description = '', allowedAddresses = [] } = input;
  const row = { id, organizationId, creatorId, label, hint, scopes, createdAt, expiresAt, number, predecessorId };
  tx.create(ApiKey, {
    ...row,
    description,
    allowedAddresses: [...allowedAddresses],
    fingerprint: fingerprint(key, pepper),
    pepperVersion: pepper.version,
    revokedAt: null,
  });
  await tx.flush();
  const restricted = allowedAddresses.length === 0 ? {} : { allowedAddresses };
  const detail = { hint, scopes, predecessorId, ...restricted };
  await recordAuditEntry(tx, { organizationId, by, keyId: id, action, detail });
  return { id, key, hint, expiresAt };
}
