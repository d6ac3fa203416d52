import type pg from 'pg';
import { deliver, type Statement, type Statements, statements } from './deliver.ts';
import { addDue, addSettled, addWebhooks } from './fill.ts';
import type { RetentionStack } from './stack.ts';
import { ways } from './ways.ts';

const partitions = 8;
const webhookCount = 5;
const settledEach = 10_000;
/** Number of deliveries that are claimed in each turn. */
const { turns, warmTurns, claimed } = { turns: 120, warmTurns: 20, claimed: 10 };

interface Side {
  name: string;
  using: Statements;
  worker: pg.Client;
  times: Record<Statement, number[]>;
}

/**
 * Compares statement times of plain tables and of ways of partitioning, in turns, as ratios of
 * medians.
 */
export async function comparePartitions(stack: RetentionStack, report: (line: string) => void): Promise<string[]> {
  const sides: Side[] = [await addSide(stack, 'plain')];
  for (const [index] of ways.entries()) sides.push(await addSide(stack, `way_${index + 1}`));
  for (let turn = 0; turn < warmTurns + turns; turn += 1) {
    const first = turn % sides.length;
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      const onTimed = (of: Statement, ms: number) => turn >= warmTurns && side.times[of].push(ms);
      const count = await deliver(side.worker, claimed, { using: side.using, onTimed });
      if (count !== claimed) throw new Error(`${side.name}: ${count} of ${claimed} deliveries were claimed`);
    }
  }
  const plain = sides[0] as Side;
  const lines = sides.map((side) => `${side.name.padEnd(24)} ${describe(side, plain)}`);
  for (const line of lines) report(line);
  return lines;
}

async function addSide(stack: RetentionStack, name: string): Promise<Side> {
  const { owner, workerUrl } = await stack.createDatabase(name);
  const way = ways[Number(name.split('_')[1] ?? 0) - 1];
  await way?.convert(owner, partitions);
  const webhooks = await addWebhooks(owner, 1, webhookCount);
  for (const webhook of webhooks) {
    await addSettled(owner, webhook, { count: settledEach, oldestDays: 90, newestDays: 0 });
    await addDue(owner, webhook, Math.ceil(((turns + warmTurns) * claimed) / webhookCount) + claimed);
  }
  await owner.query('vacuum analyze');
  const { rows } = await owner.query<{ floor: string }>(
    `select min(event_id::text) as floor from delivery where state = 'queued'`,
  );
  return {
    name: way?.name ?? name,
    using: way?.rewrite(rows[0]?.floor ?? '') ?? statements,
    worker: await stack.connect(workerUrl),
    times: { find: [], claim: [], admit: [], outcome: [] },
  };
}

function describe(side: Side, plain: Side): string {
  const parts = Object.entries(side.times).map(([of, times]) => {
    const ms = median(times);
    return `${of} ${(ms / median(plain.times[of as Statement])).toFixed(2)} (${ms.toFixed(2)} ms)`;
  });
  return parts.join('  ');
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
