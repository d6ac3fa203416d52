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
export async function planOf(pool: Pool, text: string, values: unknown[]): Promise<Plan> {
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
