import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiKey, type KeyState } from '../db/entities/key.ts';

/** A key in a list. `state` is as of `now`. */
export interface KeyRow {
  id: string;
  label: string;
  hint: string;
  makerId: string;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  state: KeyState;
}

/** Returns every key that an organization ever had, oldest first. */
export async function listKeys(em: EntityManager, organizationId: string, now: Date): Promise<KeyRow[]> {
  const keys = await em.fork().find(ApiKey, { organizationId }, { orderBy: { createdAt: 'asc', id: 'asc' } });
  return keys.map((key) => ({
    id: key.id,
    label: key.label,
    hint: key.hint,
    makerId: key.makerId,
    scopes: key.scopes,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    state: key.stateAt(now),
  }));
}
