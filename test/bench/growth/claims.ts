import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { claimDeliveriesSql, listQueuedSql } from '#delivery/sql/claim.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import { asOwner, type BenchServers } from '../servers.ts';
import { addDue, addWebhooks, type FilledWebhook } from './fill-deliveries.ts';
import { quantile } from './measure.ts';

const nil = '00000000-0000-0000-0000-000000000000';
const [rounds, warmUpRounds] = [100, 10];
/** Open deliveries of the suspended webhook, and webhooks with one event each, at most. */
const most = { deliveries: 1_000_000, webhooks: 10_000 };
/** Maximum number of webhooks that a poll lists, as in the relay. */
const listedAtOnce = 512;
/** The webhooks whose claim is measured, and the number of due deliveries of each. */
const measured = { organizations: 20, webhooksEach: 2, dueEach: 30 };

/** Returns what waits beside the measured webhooks: at most `rows` deliveries. */
function listScenes(rows: number): { name: string; sql: string }[] {
  const [deliveries, webhooks] = [Math.min(most.deliveries, rows), Math.min(most.webhooks, rows)];
  const organizations = Math.ceil(webhooks / 4);
  return [
    { name: 'alone', sql: 'select' },
    {
      name: `beside ${deliveries.toLocaleString('en')} open deliveries, suspended`,
      sql: `
      with organizations as (
        insert into organization (id, name, slug, kind, status)
        values (gen_random_uuid(), 'Suspended', 'suspended', 'law_firm', 'active') returning id
      ), webhooks as (
        insert into webhook (organization_id, id, url, event_types, number, state, suspended_reason)
        select id, gen_random_uuid(), 'https://suspended.example.com/', '{client.started}', 1, 'suspended', 'failures'
        from organizations returning organization_id, id
      ), made as materialized (
        select w.organization_id, w.id as webhook_id, new_id() as id from webhooks w, generate_series(1, ${deliveries})
      ), events as (
        insert into event (organization_id, id, type, created_at, body, delivery_count)
        select organization_id, id, 'client.started', now(), '{}', 1 from made
      )
      insert into delivery (organization_id, webhook_id, event_id, state, created_at, due_at)
      select organization_id, webhook_id, id, 'queued', now(), now() from made`,
    },
    {
      name: `beside ${webhooks.toLocaleString('en')} webhooks with one event each`,
      sql: `
      with organizations as (
        insert into organization (id, name, slug, kind, status)
        select gen_random_uuid(), 'Many', 'many-' || n, 'law_firm', 'active' from generate_series(1, ${organizations}) n
        returning id
      ), webhooks as (
        insert into webhook (organization_id, id, url, event_types, number)
        select id, gen_random_uuid(), 'https://' || id || '-' || n || '.example.com/', '{client.started}', n
        from organizations, generate_series(1, 4) n returning organization_id, id
      ), made as materialized (
        select organization_id, id as webhook_id, new_id() as id from webhooks
      ), events as (
        insert into event (organization_id, id, type, created_at, body, delivery_count)
        select organization_id, id, 'client.started', now(), '{}', 1 from made
      )
      insert into delivery (organization_id, webhook_id, event_id, state, created_at, due_at)
      select organization_id, webhook_id, id, 'queued', now(), now() from made`,
    },
  ];
}

interface Scene {
  name: string;
  worker: pg.Client;
  webhooks: FilledWebhook[];
  looks: number[];
  claims: number[];
}

/**
 * Polls and claims for the same busy webhooks in three databases in turn, two of which contain many
 * waiting deliveries of others, `rows` at most. Claims are rolled back. Returns the ratios over 1.1.
 */
export async function measureClaims(
  servers: BenchServers,
  rows: number,
  { report, say }: { report: (line: string) => void; say: (line: string) => void },
): Promise<string[]> {
  const made: Scene[] = [];
  for (const [index, { name, sql }] of listScenes(rows).entries()) {
    made.push({ name, ...(await makeScene(servers, `bench_claims_${index}`, sql)), looks: [], claims: [] });
    report(`claims ${name}: made`);
  }
  for (let round = -warmUpRounds; round < rounds; round += 1)
    for (const place of made.keys()) await claimOnce(made[(place + round + warmUpRounds) % made.length] as Scene);

  say(`\n${'Claims of others, median ms'.padEnd(46)}${'look'.padStart(12)}${'claim'.padStart(12)}   ratio`);
  const missed: string[] = [];
  const median = (values: number[]) => quantile(values.slice(warmUpRounds), 0.5);
  for (const { name, looks, claims } of made) {
    const ratio = median(claims) / median(made[0]?.claims ?? []);
    const cells = [looks, claims].map((values) => median(values).toFixed(2).padStart(12)).join('');
    say(`${name.padEnd(46)}${cells}   ${ratio.toFixed(2)}${ratio > 1.1 ? '  OVER' : ''}`);
    if (ratio > 1.1) missed.push(`a claim ${name} takes ${ratio.toFixed(2)} of its time alone`);
  }
  return missed;
}

async function makeScene({ postgres, onStop }: BenchServers, name: string, sql: string) {
  await asOwner(postgres.adminUrl, (admin) => admin.query(`create database ${name} template template0`));
  const [ownerUrl, workerUrl] = [new URL(postgres.adminUrl), new URL(postgres.adminUrl)];
  ownerUrl.pathname = workerUrl.pathname = name;
  Object.assign(workerUrl, { username: `${name}_worker`, password: randomUUID() });
  await migrate({
    owner: parsePostgresUrl(ownerUrl.href),
    logins: [{ role: 'worker', server: parsePostgresUrl(workerUrl.href) }],
  });
  const webhooks = await asOwner(ownerUrl.href, async (owner) => {
    const filled = await addWebhooks(owner, measured.organizations, measured.webhooksEach);
    for (const webhook of filled) await addDue(owner, webhook, measured.dueEach);
    await owner.query(sql);
    await owner.query('vacuum (freeze, analyze)');
    return filled;
  });
  // Plans are generic, as on every connection of the product.
  const options = '-c plan_cache_mode=force_generic_plan';
  const worker = new pg.Client({ connectionString: workerUrl.href, options });
  await worker.connect();
  onStop(() => worker.end());
  return { worker, webhooks };
}

async function claimOnce({ worker, webhooks, looks, claims }: Scene): Promise<void> {
  await worker.query('begin');
  const startedAt = performance.now();
  await worker.query({ name: 'look', text: listQueuedSql, values: [nil, nil, listedAtOnce] });
  const lookedAt = performance.now();
  const columns = (['organizationId', 'webhookId'] as const).map((id) => webhooks.map((webhook) => webhook[id]));
  const values = [...columns, 20, 20, 10];
  const { rowCount } = await worker.query({ name: 'claim', text: claimDeliveriesSql, values });
  claims.push(performance.now() - lookedAt);
  looks.push(lookedAt - startedAt);
  await worker.query('rollback');
  if (rowCount !== 20) throw new Error(`${rowCount} deliveries were claimed instead of 20`);
}
