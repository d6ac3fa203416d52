import { expect, onTestFinished } from 'vitest';
import type { Database } from '#domain/db/database.ts';

const waiting = { timeout: 30_000, interval: 20 };

/** Separates these locks from others of the database. */
const lockClass = 42;

/**
 * Lets PostgreSQL count the rosters of organizations, and begin to make them, but end none: each name
 * of a family waits for a lock of its organization, until `pass` or `open`.
 */
export async function gateRosters(owner: Database, organizations: readonly string[]) {
  await owner.pool.query(
    `create function api.wait(organization uuid) returns text security definer begin atomic
       select pg_advisory_xact_lock_shared(${lockClass}, hashtext(organization::text))::text; end;
     grant execute on function api.wait(uuid) to public;
     create or replace view api.family as
       select organization_id, id, name || api.wait(organization_id) as name from public.family`,
  );
  const client = await owner.pool.connect();
  const lock = 'pg_advisory_lock($1::int, hashtext($2))';
  const unlock = 'pg_advisory_unlock($1::int, hashtext($2))';
  for (const organization of organizations) await client.query(`select ${lock}`, [lockClass, organization]);
  let isClosed = true;
  const open = async () => {
    if (!isClosed) return;
    isClosed = false;
    await client.query('select pg_advisory_unlock_all()');
    client.release();
  };
  onTestFinished(open);

  /** Returns the organizations whose rosters are being made, each as often as one is. */
  async function listWaiting(): Promise<string[]> {
    const { rows } = await owner.pool.query<{ organization: string }>(
      `select o.organization from pg_locks l
       join unnest($2::text[]) o (organization) on hashtext(o.organization) = l.objid::bigint::bit(32)::int
       where l.locktype = 'advisory' and l.classid = $1 and not l.granted
         and l.database = (select oid from pg_database where datname = current_database())
       order by o.organization`,
      [lockClass, organizations],
    );
    return rows.map(({ organization }) => organization);
  }

  return {
    listWaiting,

    /** Waits until rosters of so many are being made; returns their organizations. */
    async until(count: number): Promise<string[]> {
      await expect.poll(async () => (await listWaiting()).length, waiting).toBe(count);
      return listWaiting();
    },

    /** Lets the roster of an organization that is being made end, and no other. Resolves when its statement has. */
    async pass(organization: string): Promise<void> {
      // A lock that is requested behind a shared one is granted after it, and before later shared ones.
      await client.query(`select ${unlock}, ${lock}`, [lockClass, organization]);
    },

    /** Lets all of them end. Can be called twice. */
    open,
  };
}
