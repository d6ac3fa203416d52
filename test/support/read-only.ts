import type { Database } from '#domain/db/database.ts';

/** How a server is unavailable for a login: a standby is read-only (25006), a full one rejects it (53300). */
const outages = {
  standby: (isUnavailable: boolean) => `set default_transaction_read_only = ${isUnavailable}`,
  full: (isUnavailable: boolean) => `connection limit ${isUnavailable ? 0 : -1}`,
};

/**
 * Makes a test's database read-only for new connections, as a standby is, or full, and ends all other
 * connections, as a failover does.
 *
 * @returns a function that does so or makes it usable again, over one connection.
 */
export async function setupFailover(
  owner: Database,
  onFinished: (end: () => void) => void,
  outage: keyof typeof outages = 'standby',
) {
  const client = await owner.pool.connect();
  onFinished(() => client.release());
  return async (isUnavailable: boolean): Promise<void> => {
    await client.query(
      `do $$ begin
         execute format('alter database %I ${outages[outage](isUnavailable)}', current_database());
       end $$`,
    );
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
  };
}

/**
 * Makes the server reject writes on all connections that are open now, as a primary does that was
 * demoted without ending them. New connections lead to the new primary.
 */
export async function rejectWritesOnOpenConnections({ pool }: Database): Promise<void> {
  await pool.query(/* sql */ `
    create table demoted as select clock_timestamp() as at;
    create function reject_write() returns trigger language plpgsql security definer set search_path = public as $$
      begin
        if (select backend_start from pg_stat_activity where pid = pg_backend_pid()) < (select at from demoted) then
          raise exception 'cannot execute in a read-only transaction' using errcode = '25006';
        end if;
        return null;
      end $$`);
  const { rows } = await pool.query<{ name: string }>(`select c.oid::regclass::text as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> 'demoted'`);
  // Each in its own transaction: one that held the locks of several tables would deadlock with what
  // writes to the same tables in another order.
  for (const { name } of rows)
    await pool.query(`create trigger reject_write before insert or update or delete on ${name}
      execute function reject_write()`);
}
