import { vi } from 'vitest';
import type { Database } from '#domain/db/database.ts';

/**
 * Adds all calls of the log to their sums, as maintenance does.
 */
export async function sumCalls({ pool }: Database): Promise<void> {
  const { rows } = await pool.query<{ settled: string }>(
    'select (last_value + is_called::integer)::text as settled from audit_entry_serial',
  );
  const isSummed = async () => {
    await pool.query('select append_audit_chain(100000)');
    await pool.query('select sum_calls(100000)');
    const text = 'select summed_to >= $1::bigint as "isSummed" from audit_progress';
    return (await pool.query<{ isSummed: boolean }>(text, [rows[0]?.settled])).rows[0]?.isSummed === true;
  };
  await vi.waitUntil(isSummed, { timeout: 60_000, interval: 20 });
}
