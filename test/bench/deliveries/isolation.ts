import { setTimeout as wait } from 'node:timers/promises';
import { deleteWebhook } from '#delivery/requests.ts';
import { intervalOfRatio } from './bootstrap.ts';
import { addOrganization, addOrganizations, type BenchOrganization, queueEvents } from './changes.ts';
import { describe } from './latency.ts';
import { measureLatency, percentile } from './measures.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const organizationCount = 10;

/** The disturbance beside which others' events are measured. */
interface Disturbance {
  /** For the title. */
  what: string;
  aim: number;
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
 * with thousands of events queued for each.
 */
export async function compareSlowReceivers(...run: Run): Promise<Result> {
  const [stack, { hangingEvents }] = run;
  return compareBeside(run, {
    what:
      `40 webhooks of two organizations that answer 200 after 9 s with ${hangingEvents.toLocaleString('en')} ` +
      'events queued each',
    aim: 1.1,
    begin: async (isPaused) => {
      const slow = [await addOrganization(stack, '/after/9000', 20), await addOrganization(stack, '/after/9000', 20)];
      for (const organization of slow) {
        if (isPaused) await pauseWebhooks(stack, organization);
        await queueEvents(stack.owner.pool, organization, hangingEvents);
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
async function compareBeside([stack, options, report]: Run, { what, aim, begin }: Disturbance): Promise<Result> {
  const { isolationRounds: rounds, isolationSeconds, isolationPerSecond, hangingLeadSeconds } = options;
  const organizations = await addOrganizations(stack, organizationCount);
  const count = isolationSeconds * isolationPerSecond;
  const measure = () => measureLatency(stack, organizations, count, isolationPerSecond);
  await measure(); // A worker that has just started is slower, which would affect only the first turn.
  const without: number[][] = [];
  const beside: number[][] = [];
  let attempts = 0;
  for (let round = 0; round < rounds; round += 1) {
    const measureTurn = async (isPaused: boolean) => {
      const queued = await begin(isPaused);
      await wait(hangingLeadSeconds * 1000);
      (isPaused ? without : beside).push(await measure());
      for (const organization of queued) attempts += await endDisturbing(stack, organization);
      await stack.owner.pool.query('vacuum (analyze) delivery'); // so that it does not affect the next turn
    };
    const turns = [() => measureTurn(true), () => measureTurn(false)];
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    report(
      `isolation, round ${round + 1} of ${rounds}: without ${describe(without[round] ?? [])}; ` +
        `beside it ${describe(beside[round] ?? [])}`,
    );
  }
  if (attempts === 0) throw new Error('what disturbs had no attempt: nothing was isolated');
  const [all, allBeside] = [without.flat(), beside.flat()];
  const ratioAt = (share: number) => percentile(allBeside, share) / percentile(all, share);
  const each = beside.map((values, round) => percentile(values, 0.99) / percentile(without[round] ?? [], 0.99));
  const pairs = beside.map((above, round) => ({ above, below: without[round] ?? [] }));
  const [low, high] = intervalOfRatio(pairs, 0.99);
  return {
    title: `first attempt of others' events beside ${what}`,
    headline:
      `p99 beside / without = ${ratioAt(0.99).toFixed(2)} (95 % of resamples ${low.toFixed(2)} to ` +
      `${high.toFixed(2)}); aim under ${aim.toFixed(2)}`,
    details: [
      `p99 by round: ${describeRatios(each)}; p50 of all: ${ratioAt(0.5).toFixed(2)}`,
      `without: ${describe(all)} (${all.length} events at ${isolationPerSecond}/s)`,
      `beside:  ${describe(allBeside)} (${allBeside.length} events; ` +
        `${(attempts / rounds).toFixed(0)} attempts a turn at what disturbs)`,
    ],
  };
}

/**
 * Deletes its webhooks, releases its posts and waits until its deliveries are settled. @returns the
 * number of its attempts.
 */
async function endDisturbing(stack: BenchStack, { id }: BenchOrganization): Promise<number> {
  const { owner } = stack;
  const { pool } = owner;
  const webhooks = await pool.query<{ id: string }>('select id from webhook where organization_id = $1', [id]);
  for (const webhook of webhooks.rows)
    await deleteWebhook(owner, { organizationId: id, webhookId: webhook.id, by: 'orgctl' });
  await stack.receiver.release();
  const giveUpAt = performance.now() + 120_000;
  for (;;) {
    const { rows } = await pool.query<{ open: number; attempts: number }>(
      `select (select count(*) from delivery where organization_id = $1 and due_at is not null)::int as open,
         (select count(*) from delivery_attempt where organization_id = $1)::int as attempts`,
      [id],
    );
    const { open = 0, attempts = 0 } = rows[0] ?? {};
    if (open === 0) return attempts;
    if (performance.now() > giveUpAt) throw new Error(`${open} deliveries of the deleted webhooks stay open`);
    await wait(100);
  }
}
