import type { Pool } from 'pg';

/** Counts the deliveries for which a condition in SQL is true. */
export async function countDeliveries(pool: Pool, condition: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`select count(*)::int as n from delivery where ${condition}`);
  return rows[0]?.n ?? 0;
}
