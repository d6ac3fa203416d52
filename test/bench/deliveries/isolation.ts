import { deleteWebhook } from '#domain/webhooks/park.ts';
import { intervalOfRatio } from './bootstrap.ts';
import { addOrganization, addOrganizations, type BenchOrganization, queueEvents } from './changes.ts';
import { describe } from './latency.ts';
import { measureLatency, percentile } from './measures.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const organizationCount = 10;

/**
 * Time to the first attempt of other organizations' events while one organization's receiver takes connections and never answers, with thousands of its events
 * queued, beside the same without it; in turns, in one run. Each hanging organization is a new one, and its webhook is deleted after its turn.
 */
export async function compareIsolation(
  stack: BenchStack,
  options: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const { isolationRounds: rounds, isolationSeconds, isolationPerSecond, hangingLeadSeconds, hangingEvents } = options;
  const organizations = await addOrganizations(stack, organizationCount);
  const count = isolationSeconds * isolationPerSecond;
  const measure = () => measureLatency(stack, organizations, count, isolationPerSecond);
  await measure(); // A worker that has just started is slower, and whichever turn came first would pay for it.
  const without: number[][] = [];
  const beside: number[][] = [];
  let hung = 0;
  for (let round = 0; round < rounds; round += 1) {
    const turns = [
      async () => void without.push(await measure()),
      async () => {
        const hanging = await addOrganization(stack, '/hang');
        await queueEvents(stack.owner.pool, hanging, hangingEvents);
        await new Promise((resolve) => setTimeout(resolve, hangingLeadSeconds * 1000));
        beside.push(await measure());
        hung += await endHanging(stack, hanging);
      },
    ];
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    report(
      `isolation, round ${round + 1} of ${rounds}: without ${describe(without[round] ?? [])}; beside it ${describe(beside[round] ?? [])}`,
    );
  }
  const [all, allBeside] = [without.flat(), beside.flat()];
  const ratioAt = (share: number) => percentile(allBeside, share) / percentile(all, share);
  const each = beside.map((values, round) => percentile(values, 0.99) / percentile(without[round] ?? [], 0.99));
  const pairs = beside.map((above, round) => ({ above, below: without[round] ?? [] }));
  const [low, high] = intervalOfRatio(pairs, 0.99);
  return {
    title: `first attempt of others' events beside a receiver that hangs with ${hangingEvents.toLocaleString('en')} events queued`,
    headline: `p99 beside / without = ${ratioAt(0.99).toFixed(2)} (95 % of resamples ${low.toFixed(2)} to ${high.toFixed(2)}); aim under 1.10`,
    details: [
      `p99 by round: ${describeRatios(each)}; p50 of all: ${ratioAt(0.5).toFixed(2)}`,
      `without: ${describe(all)} (${all.length} events at ${isolationPerSecond}/s)`,
      `beside:  ${describe(allBeside)} (${allBeside.length} events; ${(hung / rounds).toFixed(0)} posts a turn were never answered)`,
    ],
  };
}

/** Deletes its webhook, lets its posts go and waits until nothing of it is left. @returns how many posts it left unanswered. @throws Error when there were none: then nothing was measured. */
async function endHanging(stack: BenchStack, { id, webhookId }: BenchOrganization): Promise<number> {
  const { orm, pool } = stack.owner;
  await deleteWebhook(orm.em, { organizationId: id, webhookId, by: 'operator' });
  await stack.receiver.release();
  const giveUpAt = performance.now() + 30_000;
  for (;;) {
    const { rows } = await pool.query<{ open: number; hung: number }>(
      `select (select count(*) from delivery where organization_id = $1 and state = 'waiting')::int as open,
         (select count(*) from delivery_attempt where organization_id = $1 and status is null)::int as hung`,
      [id],
    );
    const { open = 0, hung = 0 } = rows[0] ?? {};
    if (open === 0 && hung === 0) throw new Error('the hanging receiver had no post: nothing was isolated');
    if (open === 0) return hung;
    if (performance.now() > giveUpAt) throw new Error(`${open} deliveries of the deleted webhook stay open`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
