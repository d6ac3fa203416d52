import { addOrganizations, commitTogether, prepareChanges, readClock, settles } from './changes.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const webhooks = 20;
const path = '/after/20';
const rounds = 2;
const settleDeadlineMs = 600_000;

/**
 * Compares the deliveries per second of a backlog of twenty webhooks with and without order. Each
 * grant starts and ends, so with order half of the deliveries wait for another. The two alternate in
 * one run, at a receiver that takes 20 ms.
 */
export async function compareOrder(
  stack: BenchStack,
  { backlogEvents }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  await drain(stack, true, 200); // warms up compiled code and connections
  const [withOrder, without]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    for (const ordered of round % 2 === 0 ? [true, false] : [false, true])
      (ordered ? withOrder : without).push(await drain(stack, ordered, backlogEvents));
    report(
      `order, round ${round + 1} of ${rounds}: with ${withOrder[round]?.toFixed(1)}/s, ` +
        `without ${without[round]?.toFixed(1)}/s`,
    );
  }
  return {
    title: `deliveries per second of ${backlogEvents.toLocaleString('en')} events, of which half wait for another`,
    headline: `with order / without = ${describeRatios(withOrder.map((rate, round) => rate / (without[round] ?? 0)))}`,
    details: [`with order: ${listed(withOrder)}`, `without: ${listed(without)}`],
  };
}

const listed = (rates: readonly number[]) => rates.map((rate) => `${rate.toFixed(1)}/s`).join(', ');

/** From the commit of the ends to the last settled delivery, by the database's clock. */
async function drain(stack: BenchStack, ordered: boolean, events: number): Promise<number> {
  const { pool } = stack.owner;
  const organizations = await addOrganizations(stack, webhooks, path);
  const ids = organizations.map(({ id }) => id);
  await pool.query('update webhook set ordered = $2 where organization_id = any ($1)', [ids, ordered]);
  await commitTogether(pool, await prepareChanges(pool, organizations, Math.ceil(events / 2)));
  await pool.query(
    `update client_grant set status = 'ended', end_reason = 'moved', ends_at = now() where organization_id = any ($1)`,
    [ids],
  );
  const committedAt = await readClock(pool);
  await settles(pool, organizations, settleDeadlineMs);
  await stack.receiver.takePosts();
  const { rows } = await pool.query<{ rate: number }>(
    `select count(*) / extract(epoch from max(settled_at) - $2::timestamptz)::float8 as rate from delivery
      where organization_id = any ($1) and settled_at > $2::timestamptz`,
    [ids, committedAt],
  );
  return rows[0]?.rate ?? Number.NaN;
}
