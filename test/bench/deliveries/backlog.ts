import {
  addOrganization,
  addOrganizations,
  type BenchOrganization,
  commitTogether,
  prepareChanges,
  readClock,
  settles,
} from './changes.ts';
import { type Turn, withProcessorTime } from './measures.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, describeTurns, type Result, togetherMicros } from './results.ts';
import type { BenchStack } from './stack.ts';

const webhooks = 20;
const path = '/after/20';
const settleDeadlineMs = 600_000;

const sides = ['one', 'twenty', 'a fifth'] as const;
type Side = (typeof sides)[number];

/** A turn with how many runs were started for a delivery on average, and for one at most. */
interface BacklogTurn extends Turn {
  runs: number;
  mostRuns: number;
}

/**
 * Compares the backlogs of one webhook, of twenty webhooks with the same number of events, and of
 * twenty with a fifth of them. Each is queued in one transaction, at a receiver that takes 20 ms. The
 * sides take turns in one run.
 */
export async function compareBacklogs(
  stack: BenchStack,
  { backlogEvents: events, backlogRounds: rounds }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const many = () => addOrganizations(stack, webhooks, path);
  const turns: Record<Side, BacklogTurn[]> = { one: [], twenty: [], 'a fifth': [] };
  const take: Record<Side, () => Promise<BacklogTurn>> = {
    one: async () => drain(stack, [await addOrganization(stack, path)], events),
    twenty: async () => drain(stack, await many(), events),
    'a fifth': async () => drain(stack, await many(), Math.ceil(events / 5)),
  };
  await drain(stack, await many(), 200); // warms up compiled code and connections
  for (let round = 0; round < rounds; round += 1) {
    for (let place = 0; place < sides.length; place += 1) {
      const side = sides[(round + place) % sides.length] as Side;
      turns[side].push(await take[side]());
    }
    const rates = sides.map((side) => `${side} ${turns[side][round]?.deliveriesPerSecond.toFixed(1)}/s`);
    report(`backlog, round ${round + 1} of ${rounds}: ${rates.join(', ')}`);
  }
  const all = Object.values(turns).flat();
  return {
    title: `deliveries per second of a backlog of ${events.toLocaleString('en')} events in one transaction`,
    headline:
      `one webhook / twenty = ${describeRatios(ratios(turns.one, turns.twenty, (one) => one.deliveriesPerSecond))}; ` +
      'aim 0.9; processor time a delivery / that with a fifth of the events = ' +
      `${describeRatios(ratios(turns.twenty, turns['a fifth'], togetherMicros))}; aim 1.0`,
    details: [
      'processor time in µs a delivery',
      ...describeTurns(turns),
      `runs started a delivery: ${Math.max(...all.map(({ runs }) => runs)).toFixed(3)} at most in a turn, ` +
        `${Math.max(...all.map(({ mostRuns }) => mostRuns))} at most for one`,
    ],
  };
}

/** Ratios of a figure, round by round. */
const ratios = (turns: readonly Turn[], others: readonly Turn[], figure: (turn: Turn) => number | null): number[] =>
  turns.map((turn, round) => (figure(turn) ?? Number.NaN) / (figure(others[round] as Turn) ?? Number.NaN));

/** From the commit to the last settled delivery, by the database's clock. */
async function drain(
  stack: BenchStack,
  organizations: readonly BenchOrganization[],
  events: number,
): Promise<BacklogTurn> {
  const { pool } = stack.owner;
  const changes = await prepareChanges(pool, organizations, events);
  await commitTogether(pool, changes);
  const committedAt = await readClock(pool);
  const read = async () => {
    const { rows } = await pool.query<{ seconds: number; runs: number; mostRuns: number; retried: number }>(
      `select extract(epoch from max(settled_at) - $2::timestamptz)::float8 as seconds, avg(run)::float8 as runs,
         max(run) as "mostRuns", (count(*) filter (where attempts > 1))::integer as retried
       from delivery where organization_id = any ($1)`,
      [organizations.map(({ id }) => id), committedAt],
    );
    return rows[0];
  };
  const turn = await withProcessorTime(stack, stack.pids.worker, events, async () => {
    await settles(pool, organizations, settleDeadlineMs);
    return (await read())?.seconds ?? Number.NaN;
  });
  await stack.receiver.takePosts();
  const { runs = Number.NaN, mostRuns = Number.NaN, retried = 0 } = (await read()) ?? {};
  return { ...turn, runs, mostRuns, retried };
}
