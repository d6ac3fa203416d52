import type pg from 'pg';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createMaintenance } from '../../../apps/worker/maintenance.ts';
import { deliver, type Statement } from './deliver.ts';
import { addDue, addSettled, addWebhooks } from './fill.ts';
import type { RetentionStack } from './stack.ts';

const load = { connections: 4, seconds: 20, organizations: 10, webhooksEach: 4 };
/** Deliveries of one webhook. */
const filled = { old: 3_000, kept: 3_000, due: 1_000 };
const aimPerSecond = 1_000;

/**
 * Measures the deliveries that maintenance purges per second while four connections deliver others
 * at full speed, and how much slower those become. Each part takes `load.seconds`.
 */
export async function measurePurge(stack: RetentionStack, report: (line: string) => void): Promise<string[]> {
  const { owner, workerUrl } = await stack.createDatabase('purge');
  const webhooks = await addWebhooks(owner, load.organizations, load.webhooksEach);
  for (const webhook of webhooks) {
    await addSettled(owner, webhook, { count: filled.old, oldestDays: 120, newestDays: 91 });
    await addSettled(owner, webhook, { count: filled.kept, oldestDays: 89, newestDays: 0 });
    await addDue(owner, webhook, filled.due);
  }
  await owner.query('vacuum analyze');
  const clients = await Promise.all(Array.from({ length: load.connections }, () => stack.connect(workerUrl)));
  report(
    `filled: ${webhooks.length * filled.old} deliveries to purge among ${webhooks.length * (filled.old + filled.kept)}`,
  );

  await deliverFor(clients, 2);
  const alone = await deliverFor(clients, load.seconds);
  const purged: { deliveries: number; atMs: number }[] = [];
  const startedAtMs = performance.now();
  const maintenance = createMaintenance({
    server: parsePostgresUrl(workerUrl),
    activityRetentionDays: 400,
    deliveryRetentionDays: 90,
    suspendAfterSeconds: 86_400 * 30,
    onPurged: ({ deliveries }) => void purged.push({ deliveries, atMs: performance.now() - startedAtMs }),
    onError: (cause, step) => report(`${step}: ${String(cause)}`),
  });
  const starting = maintenance.start();
  const beside = await deliverFor(clients, load.seconds);
  await starting;
  await maintenance.stop();
  const busy = purged.filter(({ deliveries }) => deliveries > 0);
  const perSecond = busy.reduce((sum, { deliveries }) => sum + deliveries, 0) / ((busy.at(-1)?.atMs ?? 0) / 1_000);
  const ratio = (of: Statement) =>
    `${of} ${over(median(beside.times[of]), median(alone.times[of]))} (${median(beside.times[of]).toFixed(2)} ms)`;
  return [
    `purged ${perSecond.toFixed(0)} deliveries a second, with their events and attempts; aim ${aimPerSecond}`,
    `deliveries a second beside it over alone: ${over(beside.perSecond, alone.perSecond)}`,
    `deliveries a second: ${beside.perSecond.toFixed(0)} beside it, ${alone.perSecond.toFixed(0)} alone`,
    `statements beside it over alone: ${(['claim', 'admit', 'outcome'] as const).map(ratio).join('  ')}`,
  ];
}

const over = (one: number, other: number) => (one / other).toFixed(2);

async function deliverFor(clients: readonly pg.Client[], forSeconds: number) {
  const times: Record<Statement, number[]> = { find: [], claim: [], admit: [], outcome: [] };
  const endsAtMs = performance.now() + forSeconds * 1_000;
  let count = 0;
  const deliverOn = async (client: pg.Client) => {
    while (performance.now() < endsAtMs) count += await deliver(client, 4, { onTimed: (of, ms) => times[of].push(ms) });
  };
  await Promise.all(clients.map(deliverOn));
  return { perSecond: count / forSeconds, times };
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
