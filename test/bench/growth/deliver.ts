import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type AdmissionRow, admitAttemptSql } from '#delivery/sql/admit.ts';
import { type ClaimedDelivery, claimDeliveriesSql, listQueuedSql, type QueuedWebhook } from '#delivery/sql/claim.ts';
import { outcomeValues, recordOutcomeSql } from '#delivery/sql/outcome.ts';

/** The statements of a delivery. */
const statements = {
  find: listQueuedSql,
  claim: claimDeliveriesSql,
  admit: admitAttemptSql,
  outcome: recordOutcomeSql,
};
export type Statement = keyof typeof statements;

const waitsMs = Array<number>(12).fill(60_000);
const nil = '00000000-0000-0000-0000-000000000000';

/**
 * Runs up to `atMost` deliveries through every statement from the claim to a 2xx, without a
 * workflow and without a post. Returns their number; `onTimed` gets each statement's milliseconds.
 */
export async function deliver(
  client: pg.Client,
  atMost: number,
  { onTimed = () => {} }: { onTimed?: (of: Statement, ms: number) => void } = {},
): Promise<number> {
  async function run<Row extends pg.QueryResultRow>(of: Statement, values: unknown[]): Promise<Row[]> {
    const startedAt = performance.now();
    const { rows } = await client.query<Row>({ name: of, text: statements[of], values });
    onTimed(of, performance.now() - startedAt);
    return rows;
  }
  const waiting = await run<QueuedWebhook & pg.QueryResultRow>('find', [nil, nil, 512]);
  const columns = (['organizationId', 'webhookId'] as const).map((name) =>
    waiting.slice(0, 64).map((row) => row[name]),
  );
  const claimed = await run<ClaimedDelivery & pg.QueryResultRow>('claim', [...columns, atMost, atMost, 10]);
  for (const { organizationId, webhookId, eventId, run: current } of claimed) {
    const [of, attempt] = [[organizationId, webhookId, eventId], randomUUID()];
    const [admitted] = await run<AdmissionRow & pg.QueryResultRow>('admit', [...of, current, attempt, waitsMs, 25]);
    if (admitted?.decision !== 'admitted') throw new Error('an attempt was not admitted');
    const ended = {
      organizationId,
      webhookId,
      eventId,
      run: current,
      attemptId: attempt,
      signedWith: [],
      timings: '{}',
    };
    const response = { status: 204, cause: 'accepted', explanation: null, peerAddress: '127.0.0.1', headers: null };
    const kept = { keptBytes: 0, response: null, encoding: null, tookMs: 20, retryAfterSeconds: null };
    const values = outcomeValues({ ...admitted, ...ended, ...response, ...kept, outcome: 'delivered', waitMs: 0 });
    await run('outcome', values);
  }
  return claimed.length;
}
