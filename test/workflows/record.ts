import { writeFileSync } from 'node:fs';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type AppProcess, startAppProcess } from '#test/app-processes.ts';
import { type ReceivingWebhook, startReceivers } from '#test/receiver-process.ts';
import { type ChaosServers, startServers } from '#test/region-servers.ts';
import { insertOrganization, insertWebhook, makeChange } from '#test/webhook-changes.ts';
import { sealingKeys, workerEnvironment } from '#test/worker-settings.ts';
import { getWorkflowId } from '#workflows/deliver-event/types.ts';
import { becomesTrue, secondsSince } from '../../apps/dev/servers/process.ts';
import type { Behavior } from '../chaos/plan.ts';
import { scenarioSchedule, scenarios } from './scenarios.ts';
import type { Scenario, Stage } from './stage.ts';

/**
 * `node test/workflows/record.ts [kind…]`: runs every scenario (or the named ones) and saves its
 * workflow's history, which the tests replay. Run it after adding a scenario. Keep an existing
 * history unchanged: replay protects workflows that started under older code.
 */
const report = (line: string) => console.log(`  ${line}`);
const stepDeadlineMs = 90_000;

interface Run {
  servers: ChaosServers;
  owner: Database;
  client: Client;
  worker: AppProcess;
  webhooks: Map<string, ReceivingWebhook>;
  buildUrl: (webhookId: string) => string;
}

async function main(kinds: string[]): Promise<void> {
  const servers = await startServers(report);
  const closers: (() => Promise<void>)[] = [() => servers.stop()];
  try {
    const owner = await openDatabase({
      server: parsePostgresUrl(servers.ownerUrl),
      applicationName: 'record',
      poolMax: 4,
    });
    closers.push(() => owner.close());
    const connection = await Connection.connect({ address: servers.temporalAddress });
    closers.push(() => connection.close());
    const client = new Client({ connection, namespace: servers.temporalNamespace });
    const webhooks = new Map<string, ReceivingWebhook>();
    const receivers = await startReceivers(webhooks);
    closers.push(() => receivers.stop());
    const environment = workerEnvironment(servers, { DELIVERY_SCHEDULE: scenarioSchedule });
    const worker = await startAppProcess({ name: 'worker', label: 'worker', folder: servers.folder, environment });
    closers.push(() => worker.stop());
    const run: Run = { servers, owner, client, worker, webhooks, buildUrl: receivers.buildUrl };
    const chosen = scenarios.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
    for (const [index, scenario] of chosen.entries()) await record(run, scenario, index + 1);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function record(run: Run, scenario: Scenario, seed: number): Promise<void> {
  const startedAt = performance.now();
  const stage = await setStage(run, seed);
  const kept = await scenario.run(stage);
  const { organizationId, webhookId } = stage;
  const workflowId =
    'workflowId' in kept ? kept.workflowId : getWorkflowId({ organizationId, webhookId, eventId: kept.eventId });
  const handle = run.client.workflow.getHandle(workflowId, 'runId' in kept ? kept.runId : undefined);
  const ends = ['COMPLETED', 'CONTINUED_AS_NEW', 'TERMINATED'];
  const hasEnded = async () => ends.includes((await handle.describe()).status.name);
  if (!(await becomesTrue(hasEnded, stepDeadlineMs, 100))) {
    throw new Error(`the workflow of ${scenario.kind} did not end`);
  }
  const file = new URL(`histories/${scenario.kind}.json`, import.meta.url);
  writeFileSync(file, `${JSON.stringify(await readHistory(handle), null, 2)}\n`);
  report(`${scenario.kind} is saved (${secondsSince(startedAt)})`);
}

/**
 * Removes this machine's name (in the identities of workers and the queues named after them), which
 * a replay does not need.
 */
async function readHistory(handle: WorkflowHandle): Promise<unknown> {
  const history = await handle.fetchHistory();
  const json = historyToJSON(history as Parameters<typeof historyToJSON>[0]);
  const events: unknown = JSON.parse(json, (_, value) => (/^\d+@/.test(value) ? 'worker' : value));
  return { workflowId: handle.workflowId, history: events };
}

async function setStage(run: Run, seed: number): Promise<Stage> {
  const { pool } = run.owner;
  const organization = await insertOrganization(pool, seed);
  const organizationId = organization.id;
  const webhookId = crypto.randomUUID();
  const fields = { organizationId, webhookId, number: 1, url: run.buildUrl(webhookId), keys: sealingKeys };
  const { secret } = await insertWebhook(pool, fields);
  let plan: (nth: number) => Behavior = () => ({ kind: 'answer', status: 200 });
  run.webhooks.set(webhookId, { secret, plan: (_, nth) => plan(nth) });
  const until = async (sql: string, values: unknown[]) => {
    const isSo = async () => (await pool.query<{ so: boolean }>(sql, [webhookId, ...values])).rows[0]?.so === true;
    if (!(await becomesTrue(isSo, stepDeadlineMs, 20)))
      throw new Error(`a step of scenario ${seed} did not come about`);
  };
  return {
    pool,
    client: run.client,
    organizationId,
    webhookId,
    receive: (wanted) => {
      plan = wanted;
    },
    async makeEvent() {
      await makeChange(pool, organization, seed, 0, 10_000);
      const { rows } = await pool.query<{ id: string }>('select id from event where organization_id = $1', [
        organizationId,
      ]);
      return rows[0]?.id ?? '';
    },
    attempts: (count, open) =>
      until(
        'select count(*) = $2 and count(*) filter (where finished_at is null) = $3 as so from ' +
          'delivery_attempt where webhook_id = $1',
        [count, open],
      ),
    state: (state) => until('select state = $2 as so from delivery where webhook_id = $1', [state]),
    killWorker: run.worker.kill,
    killPostgres: () => run.servers.kill('postgres'),
    restartPostgres: () => run.servers.restart('postgres'),
  };
}

await main(process.argv.slice(2));
