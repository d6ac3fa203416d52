import { readdirSync, readFileSync } from 'node:fs';
import type { Client } from 'pg';

/** A table, as PostgreSQL's statistics describe it. */
export interface TableSample {
  name: string;
  liveRows: number;
  deadRows: number;
  indexBytes: number;
  /** Rows that were updated or deleted since the start. */
  changedRows: number;
  /** Number of dead rows at which autovacuum cleans the table. */
  vacuumFrom: number;
}

/** One moment of a soak. */
export interface Sample {
  atSeconds: number;
  /** Private memory in bytes, by process. */
  memory: Map<string, number>;
  tables: Map<string, TableSample>;
}

const tablesSql = `
  select s.relname as name, s.n_live_tup::float8 as "liveRows", s.n_dead_tup::float8 as "deadRows",
    pg_indexes_size(s.relid)::float8 as "indexBytes", (s.n_tup_upd + s.n_tup_del)::float8 as "changedRows",
    setting.threshold + setting.share * s.n_live_tup as "vacuumFrom"
  from pg_stat_user_tables s join pg_class c on c.oid = s.relid
  cross join lateral (
    select
      coalesce(max(o.option_value) filter (where o.option_name = 'autovacuum_vacuum_threshold'),
        current_setting('autovacuum_vacuum_threshold'))::float8 as threshold,
      coalesce(max(o.option_value) filter (where o.option_name = 'autovacuum_vacuum_scale_factor'),
        current_setting('autovacuum_vacuum_scale_factor'))::float8 as share
    from pg_options_to_table(c.reloptions) o
  ) setting`;

export async function takeTables(owner: Client): Promise<Map<string, TableSample>> {
  const { rows } = await owner.query<TableSample>(tablesSql);
  return new Map(rows.map((row) => [row.name, row]));
}

/**
 * Returns the private memory of a process and its children in bytes, without shared memory such as
 * PostgreSQL's buffers. 0 when it has ended.
 */
export function privateMemoryOf(pid: number): number {
  const children = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && parentOf(entry) === pid);
  return [String(pid), ...children].reduce((sum, each) => sum + readStatus(each, 'RssAnon') * 1_024, 0);
}

const parentOf = (pid: string) => readStatus(pid, 'PPid');

function readStatus(pid: string, field: string): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  } catch {
    return 0; // it ended
  }
}
