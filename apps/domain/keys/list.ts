import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiKey, type KeyState } from './api-key.entity.ts';

/** A key in a list. `state` is as of `now`. */
export type KeyRow = Pick<ApiKey, 'id' | 'label' | 'hint' | 'creatorId' | 'scopes' | 'createdAt' | 'expiresAt'> & {
  state: KeyState;
};

/** Returns every key that an organization ever had, oldest first. */
export async function listKeys(em: EntityManager, organizationId: string, now: Date): Promise<KeyRow[]> {
  const keys = await em.fork().find(ApiKey, { organizationId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  return keys.map((key) => {
    const { id, label, hint, creatorId, scopes, createdAt, expiresAt } = key;
    return { id, label, hint, creatorId, scopes, createdAt, expiresAt, state: key.stateAt(now) };
  });
}
