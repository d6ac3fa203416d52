import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { liveKeysPerOrganization } from '../contract/limits.ts';

/**
 * Makes the changes of one organization's keys wait for each other until the transaction ends. The
 * unique index on slots would refuse a 26th key without it; with it, makers at once get different
 * slots instead of an error.
 */
export async function lockKeys(em: EntityManager, organizationId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('org_api.keys.' || ${organizationId}::text, 0))`.execute(
    em.getKysely(),
  );
}

/**
 * Makes a change of the maker's membership wait until the transaction ends, and waits for one that
 * is under way: a key created while its maker leaves would otherwise be missed by the trigger that
 * ends their keys.
 */
export async function holdMembership(em: EntityManager, organizationId: string, personId: string): Promise<void> {
  await sql`
    select from membership where organization_id = ${organizationId} and person_id = ${personId} for share`.execute(
    em.getKysely(),
  );
}

/**
 * Takes the slots back from expired keys and finds the lowest free one, or null when 25 keys are
 * live. Call it under `lockKeys`.
 */
export async function findFreeSlot(em: EntityManager, organizationId: string, now: Date): Promise<number | null> {
  await sql`
    update api_key set slot = null
    where organization_id = ${organizationId} and slot is not null and expires_at <= ${now.toISOString()}::timestamptz`.execute(
    em.getKysely(),
  );
  const { rows } = await sql<{ slot: number }>`
    select slot from generate_series(1, ${liveKeysPerOrganization}::int) as slot
    where not exists (select from api_key k where k.organization_id = ${organizationId} and k.slot = slot.slot)
    order by slot limit 1`.execute(em.getKysely());
  return rows[0]?.slot ?? null;
}
