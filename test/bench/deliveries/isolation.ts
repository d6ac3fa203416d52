import { setTimeout as wait } from 'node:timers/promises';
import { deleteWebhook } from '#delivery/requests.ts';
import { intervalOfRatio } from './bootstrap.ts';
import {
  addOrganization,
  addOrganizations,
  type BenchOrganization,
  commitPaced,
  prepareChanges,
  queueEvents,
  settles,
} from './changes.ts';
import { describe } from './latency.ts';
import { measureLatency, percentile } from './measures.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const organizationCount = 10;

/**
 * What a turn has beside the measured events: nothing is sent to the disturbing organizations
 * (`without`), their events are posted (`beside`), or instead as many posts go to a receiver that
 * answers at once (`fast`).
 */
type Side = 'without' | 'beside' | 'fast';

/** The disturbance beside which others' events are measured. */
interface Disturbance {
  /** For the title. */
  what: string;
  aim: number;
  sides: readonly Side[];
  /** Adds its organizations, with the events queued. `isPaused`: nothing is sent to them. */
  begin(isPaused: boolean): Promise<BenchOrganization[]>;
}

type Run = [stack: BenchStack, options: BenchOptions, report: (line: string) => void];

/**
 * A receiver that accepts connections and never answers, with thousands of its organization's
 * events queued.
 */
export async function compareIsolation(...run: Run): Promise<Result> {
  const [stack, { hangingEvents }] = run;
  return compareBeside(run, {
    what: `a receiver that hangs with ${hangingEvents.toLocaleString('en')} events queued`,
    aim: 1.1,
    sides: ['without', 'beside'],
    begin: async (isPaused) => {
      const hanging = await addOrganization(stack, '/hang');
      if (isPaused) await pauseWebhooks(stack, hanging);
      await queueEvents(stack.owner.pool, hanging, hangingEvents);
      return [hanging];
    },
  });
}

/**
 * 40 webhooks of two organizations, whose receiver answers every post with 200 after nine seconds,
 * with far more events queued for each than a turn posts.
 */
export async function compareSlowReceivers(...run: Run): Promise<Result> {
  const [stack, { slowEvents }] = run;
  return compareBeside(run, {
    what: `40 webhooks of two organizations that answer 200 after 9 s with ${slowEvents} events queued each`,
    aim: 1.1,
    sides: ['beside', 'fast', 'without'],
    begin: async (isPaused) => {
      const slow = [await addOrganization(stack, '/after/9000', 20), await addOrganization(stack, '/after/9000', 20)];
      for (const organization of slow) {
        if (isPaused) await pauseWebhooks(stack, organization);
        await queueEvents(stack.owner.pool, organization, slowEvents);
      }
      return slow;
    },
  });
}

async function pauseWebhooks({ owner }: BenchStack, { id }: BenchOrganization): Promise<void> {
  const pause = "update webhook set state = 'paused' where organization_id = $1";
  await owner.pool.query(pause, [id]);
}

/**
 * Compares the time to the first attempt of other organizations' events with and without a
 * disturbance, in turns of one run. Each disturbing organization is new, and its webhooks are
 * deleted after its turn. The turn without has as many events queued, of paused webhooks: so what
 * PostgreSQL does for rows that were just inserted (vacuum, checkpoint) falls on both.
 */
async function compareBeside([stack, options, report]: Run, { what, aim, sides, begin }: Disturbance): Promise<Result> {
  const { isolationRounds: rounds, isolationSeconds, isolationPerSecond, hangingLeadSeconds } = options;
  const organizations = await addOrganizations(stack, organizationCount);
  const count = isolationSeconds * isolationPerSecond;
  const measure = () => measureLatency(stack, organizations, count, isolationPerSecond);
  await measure(); // A worker that has just started is slower, which would affect only the first turn.
  const times: Record<Side, number[][]> = { without: [], beside: [], fast: [] };
  let [attempts, fastPosts] = [0, 0];
  const measureTurn = async (side: Side) => {
    const queued = await begin(side !== 'beside');
    const posts = side === 'fast' ? Math.round(attempts / times.beside.length) : 0;
    const fast = posts > 0 ? [await addOrganization(stack, '/fast')] : [];
    const changes = await prepareChanges(stack.owner.pool, fast, posts);
    queued.push(...fast);
    fastPosts += posts;
    await wait(hangingLeadSeconds * 1000);
    const posting = commitPaced(stack.owner.pool, changes, posts / isolationSeconds);
    const [measured] = await Promise.all([measure(), posting]);
    times[side].push(measured);
    if (side === 'beside') attempts += await countAttempts(stack, queued, isolationSeconds);
    for (const organization of queued) await endDisturbing(stack, organization);
    await stack.owner.pool.query('vacuum (analyze) delivery'); // so that it does not affect the next turn
  };
  for (let round = 0; round < rounds; round += 1) {
    // The first round has posts to slow receivers before it has as many to fast ones.
    const turns = sides.map((_, nth) => sides[(nth + round) % sides.length] as Side);
    for (const side of turns) await measureTurn(side);
    const described = sides.map((side) => `${side} ${describe(times[side][round] ?? [])}`).join('; ');
    report(`isolation, round ${round + 1} of ${rounds}: ${described}`);
  }
  if (attempts === 0) throw new Error('what disturbs had no attempt: nothing was isolated');
  const postsBySide: Record<Side, number> = { without: 0, beside: attempts, fast: fastPosts };
  return {
    title: `first attempt of others' events beside ${what}`,
    headline: `p99 beside / without = ${describeRatio(times.beside, times.without)}; aim under ${aim.toFixed(2)}`,
    details: [
      ...(sides.includes('fast')
        ? [
            'p99 beside / fast (as many posts to a receiver that answers at once) = ' +
              describeRatio(times.beside, times.fast),
          ]
        : []),
      `p99 by round, beside / without: ${describeRatios(ratiosByRound(times.beside, times.without))}`,
      ...sides.map(
        (side) =>
          `${side}: ${describe(times[side].flat())} (${times[side].flat().length} events at ${isolationPerSecond}/s` +
          `; ${(postsBySide[side] / rounds).toFixed(0)} other posts a turn)`,
      ),
    ],
  };
}

/** `1.05 (95 % of resamples 0.98 to 1.12; p50 1.01)`. */
function describeRatio(above: readonly number[][], below: readonly number[][]): string {
  const ratioAt = (share: number) => (percentile(above.flat(), share) / percentile(below.flat(), share)).toFixed(2);
  const pairs = above.map((values, round) => ({ above: values, below: below[round] ?? [] }));
  const [low, high] = intervalOfRatio(pairs, 0.99);
  return `${ratioAt(0.99)} (95 % of resamples ${low.toFixed(2)} to ${high.toFixed(2)}; p50 ${ratioAt(0.5)})`;
}

const ratiosByRound = (above: readonly number[][], below: readonly number[][]): number[] =>
  above.map((values, round) => percentile(values, 0.99) / percentile(below[round] ?? [], 0.99));

/** Returns the number of attempts that were under way in the last seconds, however long each takes. */
async function countAttempts(
  { owner }: BenchStack,
  organizations: readonly BenchOrganization[],
  seconds: number,
): Promise<number> {
  const { rows } = await owner.pool.query<{ attempts: number }>(
    `select count(*)::int as attempts from delivery_attempt
      where organization_id = any ($1)
        and coalesce(finished_at, 'infinity') > clock_timestamp() - make_interval(secs => $2)`,
    [organizations.map(({ id }) => id), seconds],
  );
  return rows[0]?.attempts ?? 0;
}

/** Deletes its webhooks, closes its hanging posts and waits until its deliveries are settled. */
async function endDisturbing(stack: BenchStack, organization: BenchOrganization): Promise<void> {
  const { owner } = stack;
  const { pool } = owner;
  const { id } = organization;
  const webhooks = await pool.query<{ id: string }>('select id from webhook where organization_id = $1', [id]);
  for (const webhook of webhooks.rows)
    await deleteWebhook(owner, { organizationId: id, webhookId: webhook.id, by: 'orgctl' });
  await stack.receiver.closeHanging();
  await settles(pool, [organization], 120_000);
}
