/**
 * Executed plans of statements, so that tests can judge how many rows a statement reads instead of
 * how long it takes.
 */
import type { Pool } from 'pg';

export interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Parent Relationship'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

/**
 * Executes a statement and returns its plan. Sequential scans are off, because the planner prefers
 * them for a test's small tables.
 */
export async function explainStatement(pool: Pool, text: string, values: unknown[]): Promise<Plan> {
  const client = await pool.connect();
  try {
    await client.query('set enable_seqscan = off');
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, costs off, timing off, format json) ${text}`,
      values,
    );
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    if (plan === undefined) throw new Error('no plan');
    return plan;
  } finally {
    await client.query('reset enable_seqscan');
    client.release();
  }
}

/**
 * Returns the number of rows that the scans of a plan read, including those that a filter removed.
 */
export function rowsRead(plan: Plan): number {
  const isScan = /(Seq|Index|Index Only|Bitmap Heap) Scan$/.test(plan['Node Type']);
  const own = isScan ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'] : 0;
  return (plan.Plans ?? []).reduce((sum, part) => sum + rowsRead(part), own);
}

/** Rows that a statement read and wrote, by PostgreSQL's own counters. */
export interface Touched {
  read: number;
  /** Inserted, updated and deleted rows of each table. */
  written: Record<string, number>;
}

/**
 * Executes a statement and counts its rows, those of the functions it calls included. By a plan for
 * any values, as on the product's connections; `seqScans` are off as for large tables.
 */
export async function countTouched(
  pool: Pool,
  text: string,
  values: unknown[],
  { seqScans = false } = {},
): Promise<Touched> {
  const client = await pool.connect();
  const counters = async () => {
    const { rows } = await client.query<{ name: string; read: number; written: number }>(
      `select relname as name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as read,
         (n_tup_ins + n_tup_upd + n_tup_del)::float8 as written
       from pg_stat_xact_user_tables`,
    );
    return rows;
  };
  try {
    await client.query('begin');
    await client.query(`set local plan_cache_mode = force_generic_plan; set local enable_seqscan = ${seqScans}`);
    const before = new Map((await counters()).map((row) => [row.name, row]));
    await client.query(text, values);
    const after = await counters();
    await client.query('commit');
    const since = (of: 'read' | 'written', row: (typeof after)[number]) => row[of] - (before.get(row.name)?.[of] ?? 0);
    return {
      read: after.reduce((sum, row) => sum + since('read', row), 0),
      written: Object.fromEntries(after.map((row) => [row.name, since('written', row)])),
    };
  } finally {
    client.release();
  }
}
