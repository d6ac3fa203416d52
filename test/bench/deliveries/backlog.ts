import {
  addOrganization,
  addOrganizations,
  type BenchOrganization,
  commitTogether,
  prepareChanges,
  readClock,
  settles,
} from './changes.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const webhooks = 20;
const path = '/after/20';
const rounds = 2;
const settleDeadlineMs = 600_000;

/**
 * Compares the deliveries per second of one webhook's backlog with those of the same number of
 * events of twenty webhooks. Each is queued in one transaction, at a receiver that takes 20 ms. The
 * two alternate in one run.
 */
export async function compareBacklogs(
  stack: BenchStack,
  { backlogEvents }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  await drain(stack, await addOrganizations(stack, webhooks, path), 200); // warms up compiled code and connections
  const [one, many]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const turns = [
      async () => void one.push(await drain(stack, [await addOrganization(stack, path)], backlogEvents)),
      async () => void many.push(await drain(stack, await addOrganizations(stack, webhooks, path), backlogEvents)),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    report(
      `backlog, round ${round + 1} of ${rounds}: one webhook ${one[round]?.toFixed(1)}/s, ` +
        `twenty ${many[round]?.toFixed(1)}/s`,
    );
  }
  return {
    title: `deliveries per second of a backlog of ${backlogEvents.toLocaleString('en')} events in one transaction`,
    headline: `one webhook / twenty = ${describeRatios(one.map((rate, round) => rate / (many[round] ?? 0)))}; aim 0.9`,
    details: [`one webhook: ${listed(one)}`, `twenty: ${listed(many)}`],
  };
}

const listed = (rates: readonly number[]) => rates.map((rate) => `${rate.toFixed(1)}/s`).join(', ');

/** From the commit to the last settled delivery, by the database's clock. */
async function drain(stack: BenchStack, organizations: readonly BenchOrganization[], events: number): Promise<number> {
  const { pool } = stack.owner;
  const changes = await prepareChanges(pool, organizations, events);
  await commitTogether(pool, changes);
  const committedAt = await readClock(pool);
  await settles(pool, organizations, settleDeadlineMs);
  await stack.receiver.takePosts();
  const settled = await pool.query<{ seconds: number }>(
    `select extract(epoch from max(settled_at) - $2::timestamptz)::float8 as seconds from delivery
      where organization_id = any ($1)`,
    [organizations.map(({ id }) => id), committedAt],
  );
  return events / (settled.rows[0]?.seconds ?? Number.NaN);
}
