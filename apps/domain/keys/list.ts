import type { InferEntity } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiKey } from '../db/entities/key.ts';

/**
 * Whether a key works. `inactive`: its maker has left the organization since, and every read
 * answers 403.
 */
export type KeyState = 'live' | 'expired' | 'revoked' | 'inactive';

/** What may be shown of a key. `state` is as of `now`. */
export interface KeyListing {
  id: string;
  label: string;
  hint: string;
  makerId: string;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  state: KeyState;
}

/** Every key an organization ever had, oldest first. */
export async function listKeys(em: EntityManager, organizationId: string, now: Date): Promise<KeyListing[]> {
  const keys = await em.fork().find(ApiKey, { organizationId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  return keys.map(({ id, label, hint, makerId, scopes, createdAt, expiresAt, ...ends }) => ({
    id,
    label,
    hint,
    makerId,
    scopes,
    createdAt,
    expiresAt,
    state: stateOf({ expiresAt, ...ends }, now),
  }));
}

type Ends = Pick<InferEntity<typeof ApiKey>, 'expiresAt' | 'revokedAt' | 'makerLeftAt'>;

/**
 * Returns the state of a key as of `now`. What is answered 401 comes before what is answered 403,
 * as in a read.
 */
export function stateOf({ expiresAt, revokedAt, makerLeftAt }: Ends, now: Date): KeyState {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && expiresAt <= now) return 'expired';
  return makerLeftAt ? 'inactive' : 'live';
}
