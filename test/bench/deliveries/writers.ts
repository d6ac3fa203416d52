import { addOrganizations, commitAll, type GrantChange, prepareChanges } from './changes.ts';
import type { BenchOptions } from './options.ts';
import { describeRatios, type Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const rounds = 4;
const organizationCount = 8;
/**
 * Time (µs) that a commit waits for the simulated standby: the leader of a group sleeps this long
 * before its flush.
 */
const commitDelayMicros = 3_000;

/**
 * Compares commits per second of eight writers, one transaction per grant: with org-api's triggers,
 * and with plain inserts of the same rows of `client_grant`, `event` and `delivery`, in turns.
 * A commit takes 3 ms by `commit_delay` with `commit_siblings` 0. The first to flush sleeps, and
 * all that arrive meanwhile share its flush, as with a synchronous standby. The worker is stopped
 * first, so that deliveries take no processor time from either side. This is the last part of a
 * run.
 */
export async function compareWriters(
  stack: BenchStack,
  { writersGrants }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const { pool } = stack.owner;
  await stack.stopWorker();
  const organizations = await addOrganizations(stack, organizationCount);
  await pool.query(`alter database bench set commit_delay = ${commitDelayMicros}`);
  await pool.query('alter database bench set commit_siblings = 0');
  await reconnect(stack);
  const [withTriggers, plain]: [number[], number[]] = [[], []];
  const turn = async (hasTriggers: boolean) => {
    const changes = await prepareChanges(pool, organizations, writersGrants);
    await pool.query(
      `alter table client_grant ${hasTriggers ? 'enable' : 'disable'} trigger client_grant_started_event`,
    );
    const startedAt = performance.now();
    await (hasTriggers ? commitAll(pool, changes) : insertAll(stack, changes));
    (hasTriggers ? withTriggers : plain).push(writersGrants / ((performance.now() - startedAt) / 1_000));
  };
  await turn(true);
  await turn(false);
  withTriggers.length = 0;
  plain.length = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const hasTriggers of round % 2 === 0 ? [true, false] : [false, true]) await turn(hasTriggers);
    report(
      `writers, round ${round + 1} of ${rounds}: with triggers ${withTriggers[round]?.toFixed(0)}/s, ` +
        `plain ${plain[round]?.toFixed(0)}/s`,
    );
  }
  await pool.query('alter table client_grant enable trigger client_grant_started_event');
  await pool.query('alter database bench reset commit_delay');
  await pool.query('alter database bench reset commit_siblings');
  return {
    title: 'commits of grants per second by eight writers, with a commit of 3 ms',
    headline: `with triggers / plain inserts =
      ${describeRatios(withTriggers.map((rate, round) => rate / (plain[round] ?? 0)))}; aim 0.9`,
    details: [
      `with triggers: ${listed(withTriggers)}`,
      `plain inserts: ${listed(plain)}`,
      'commits that wait for each other make 333/s at most',
    ],
  };
}

const listed = (rates: readonly number[]) => rates.map((rate) => `${rate.toFixed(0)}/s`).join(', ');

/** Settings of the database apply to later connections. */
async function reconnect({ owner }: BenchStack): Promise<void> {
  await owner.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
      and pid <> pg_backend_pid()`,
  );
  const { rows } = await owner.pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  await owner.pool.query(`select pg_terminate_backend(${rows[0]?.pid})`).catch(() => {});
}

/**
 * Inserts the same rows without a trigger, each grant with its event and delivery in one statement,
 * over eight connections.
 */
async function insertAll({ owner: { pool } }: BenchStack, changes: readonly GrantChange[]): Promise<void> {
  let next = 0;
  const line = async () => {
    for (let change = changes[next++]; change !== undefined; change = changes[next++]) await insertPlain(pool, change);
  };
  await Promise.all(Array.from({ length: 8 }, line));
}

async function insertPlain(pool: BenchStack['owner']['pool'], change: GrantChange): Promise<void> {
  const { organization, familyId, grantId } = change;
  await pool.query({
    name: 'plainGrant',
    text: `with made as (
        insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
        values ($1, $2, 'attorney', $3, $4, now() - interval '1 day')
      ), happened as (
        insert into event (organization_id, id, type, created_at, body, delivery_count)
        values ($1, new_id(), 'client.started', clock_timestamp(), $6, 1) returning id
      )
      insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
      select $1, $5, h.id, 'queued', clock_timestamp(), clock_timestamp() from happened h`,
    values: [organization.id, grantId, organization.userId, familyId, organization.webhookId, 'x'.repeat(300)],
  });
}
