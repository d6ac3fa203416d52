import { listUnclaimedSql } from '#domain/db/statements/claim-deliveries.ts';

interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: { organizationId: string; webhookId: string }[] }>;
}

const nil = '00000000-0000-0000-0000-000000000000';

/** Values for `claimDeliveriesSql` that cover every webhook with an unstarted delivery. */
export async function claimValues(
  database: Queryable,
  { prompt = 200, slow = 200, leaseSeconds = 15 }: { prompt?: number; slow?: number; leaseSeconds?: number } = {},
): Promise<unknown[]> {
  const { rows } = await database.query(listUnclaimedSql, [nil, nil, 100_000, true]);
  const columns = (['organizationId', 'webhookId'] as const).map((name) => rows.map((row) => row[name]));
  return [prompt, slow, leaseSeconds, ...columns];
}
