import type { QueryResult } from 'pg';
import { type RecordedRow, recordOutcomeSql } from '#domain/db/statements/attempts.ts';

interface Queries {
  // biome-ignore lint/suspicious/noExplicitAny: rows of any statement
  query(text: string, values: unknown[]): Promise<QueryResult<any>>;
}

/**
 * Records the outcome of an admitted attempt, as the worker that admitted it does. `values` are the
 * first 15 of `recordOutcomeSql`; the others come from the attempt's row.
 */
export async function recordOutcome(on: Queries, values: unknown[]): Promise<RecordedRow[]> {
  const found = await on.query(
    `select started_at::text as "startedAt", round, is_last as "isLast", signed_with as "signedWith"
      from delivery_attempt
     where organization_id = $1 and webhook_id = $2 and event_id = $3 and number = $4`,
    values.slice(0, 4),
  );
  const { startedAt, round, isLast, signedWith } = found.rows[0];
  const { rows } = await on.query(recordOutcomeSql, [...values, startedAt, round, isLast, signedWith]);
  return rows;
}
