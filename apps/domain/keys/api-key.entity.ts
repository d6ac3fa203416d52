import { defineEntity, p } from '@mikro-orm/core';

/** Whether a key works. `inactive`: its creator has left, and every read answers 403. */
export type KeyState = 'valid' | 'expired' | 'revoked' | 'inactive';

const ApiKeySchema = defineEntity({
  name: 'ApiKey',
  properties: {
    id: p.uuid().primary(),
    organizationId: p.uuid(),
    creatorId: p.text(),
    label: p.text(),
    description: p.text(),
    allowedAddresses: p.array().columnType('cidr[]'),
    fingerprint: p.blob(),
    pepperVersion: p.smallint(),
    hint: p.text(),
    scopes: p.array(),
    createdAt: p.datetime(),
    expiresAt: p.datetime().strictNullable(),
    revokedAt: p.datetime().strictNullable(),
    /** When its creator left the organization; set by a trigger. */
    creatorLeftAt: p.datetime().nullable(),
    number: p.smallint().strictNullable(),
    predecessorId: p.uuid().strictNullable(),
  },
});

/**
 * An API key: its fingerprint, never the key. `expiresAt` null: until revoked. `number` is its
 * number among the organization's 25 valid keys, or null. `hint` is the part that may be shown: the
 * first and last four characters. `allowedAddresses` are the blocks from which it may be used; none:
 * from every address.
 */
export class ApiKey extends ApiKeySchema.class {
  /** Returns the state as of `now`. As in a read, states of a 401 come before those of a 403. */
  stateAt(now: Date): KeyState {
    if (this.revokedAt !== null) return 'revoked';
    if (this.expiresAt !== null && this.expiresAt <= now) return 'expired';
    return this.creatorLeftAt ? 'inactive' : 'valid';
  }

  /** Revokes the key and frees its number. Only the first revocation counts. */
  revoke(at: Date): void {
    this.revokedAt ??= at;
    this.number = null;
  }

  /** Makes the key expire at `at`, unless it expires earlier. */
  expireBy(at: Date): void {
    if (this.expiresAt === null || this.expiresAt > at) this.expiresAt = at;
  }

  /** Frees the number of a key that has expired. */
  freeNumber(now: Date): void {
    if (this.stateAt(now) === 'expired') this.number = null;
  }
}
ApiKeySchema.setClass(ApiKey);
