/**
 * Plans of statements as PostgreSQL carried them out, so that tests can judge what a statement
 * reads and not how long it takes.
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
 * Carries a statement out and returns its plan. Without sequential scans, which the planner prefers
 * for the tables of a test and not for large ones.
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

/** How many rows the scans of a plan read, those that a filter removed included. */
export function rowsRead(plan: Plan): number {
  const isScan = /(Seq|Index|Index Only|Bitmap Heap) Scan$/.test(plan['Node Type']);
  const own = isScan ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'] : 0;
  return (plan.Plans ?? []).reduce((sum, part) => sum + rowsRead(part), own);
}
