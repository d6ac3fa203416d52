import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiKey } from '../db/entities/key.ts';

/** What may be shown of a key. `state` is as of `now`. */
export interface KeyListing {
  id: string;
  label: string;
  hint: string;
  makerId: string;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  state: 'live' | 'expired' | 'revoked';
}

/** Every key an organization ever had, oldest first. */
export async function listKeys(em: EntityManager, organizationId: string, now: Date): Promise<KeyListing[]> {
  const keys = await em.fork().find(ApiKey, { organizationId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  return keys.map(({ id, label, hint, makerId, scopes, createdAt, expiresAt, revokedAt }) => ({
    ...{ id, label, hint, makerId, scopes, createdAt, expiresAt },
    state: revokedAt !== null ? 'revoked' : expiresAt !== null && expiresAt <= now ? 'expired' : 'live',
  }));
}
