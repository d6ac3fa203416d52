import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { admitAttemptSql, recordOutcomeSql } from '#domain/db/statements/attempts.ts';
import { claimDeliveriesSql, listUnclaimedSql, recordStartedSql } from '#domain/db/statements/claim-deliveries.ts';

/** The statements of a delivery for one way of storing the tables. */
export const statements = {
  find: listUnclaimedSql,
  claim: claimDeliveriesSql,
  admit: admitAttemptSql,
  outcome: recordOutcomeSql,
};
export type Statement = keyof typeof statements;
export type Statements = Readonly<Record<Statement, string>>;

const uniqueViolation = '23505';
const nil = '00000000-0000-0000-0000-000000000000';

interface Admitted {
  number: number | null;
  startedAt: string;
}

interface Claimed {
  organizationId: string;
  webhookId: string;
  eventId: string;
  round: number;
}

/**
 * Runs up to `atMost` deliveries through every statement from the claim to a 2xx, without a
 * workflow and without a post. Returns their number; `onTimed` gets each statement's milliseconds.
 */
export async function deliver(
  client: pg.Client,
  atMost: number,
  {
    using = statements,
    onTimed = () => {},
  }: { using?: Statements; onTimed?: (of: Statement, ms: number) => void } = {},
): Promise<number> {
  async function run<Row extends pg.QueryResultRow>(of: Statement, values: unknown[]): Promise<Row[]> {
    const startedAt = performance.now();
    const { rows } = await client.query<Row>({ name: of, text: using[of], values });
    onTimed(of, performance.now() - startedAt);
    return rows;
  }
  /** Another connection may take the same slot at the same moment; then this one tries another. */
  async function admit(values: unknown[]): Promise<Admitted> {
    for (;;) {
      try {
        const [admitted] = await run<Admitted>('admit', values);
        if (admitted === undefined || admitted.number === null) throw new Error('an attempt was not admitted');
        return admitted;
      } catch (error) {
        if (!(error instanceof pg.DatabaseError && error.code === uniqueViolation)) throw error;
      }
    }
  }
  const waiting = await run<Pick<Claimed, 'organizationId' | 'webhookId'>>('find', [nil, nil, 512, false]);
  const columns = (['organizationId', 'webhookId'] as const).map((name) =>
    waiting.slice(0, 64).map((row) => row[name]),
  );
  const claimed = await run<Claimed>('claim', [atMost, atMost, 30, ...columns]);
  for (const { organizationId, webhookId, eventId, round } of claimed) {
    const values = [[organizationId], [webhookId], [eventId], [round]];
    await client.query({ name: 'recordStarted', text: recordStartedSql, values });
    const of = [organizationId, webhookId, eventId];
    const admitted = await admit([...of, round, false, true, randomUUID()]);
    const answer = [204, 'accepted', null, '{}', '127.0.0.1', 0, null];
    const then = ['delivered', null, false, '{}', admitted.startedAt, round, false, []];
    await run('outcome', [...of, admitted.number, ...answer, ...then]);
  }
  return claimed.length;
}
