import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import type { Pool } from 'pg';
import type { AppProcess } from '#test/app-processes.ts';
import type { ChaosServers } from '#test/region-servers.ts';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { becomesTrue, secondsSince } from '../../apps/dev/servers/process.ts';

/** Faults that need the run in a certain state; the kills of `faults.ts` come at random moments. */

/**
 * Kills both workers at a moment at which a relay holds claims. Retries until claims remain after
 * the kill.
 * @returns the number of slots that were reserved and whose attempt was not admitted; 0 after 60 s.
 */
export async function killWithClaims(pool: Pool, workers: readonly AppProcess[]): Promise<number> {
  const giveUpAt = performance.now() + 60_000;
  while (performance.now() < giveUpAt) {
    if ((await countClaims(pool)) === 0) {
      await wait(3);
      continue;
    }
    await Promise.all(workers.map((worker) => worker.kill()));
    const claims = await countClaims(pool);
    if (claims > 0) return claims;
  }
  return 0;
}

/** 0 while PostgreSQL is down. */
async function countClaims(pool: Pool): Promise<number> {
  try {
    const { rows } = await pool.query<{ claims: number }>(
      `select count(*)::integer as claims from slot where attempt_id is null and until > clock_timestamp()`,
    );
    return rows[0]?.claims ?? 0;
  } catch {
    return 0;
  }
}

/** Bundles workflows that cannot replay any current history, for `WORKFLOW_BUNDLE`. */
export async function writeAlteredBundle(file: string): Promise<void> {
  const workflowsPath = fileURLToPath(new URL('../workflows/altered/index.ts', import.meta.url));
  writeWorkflowBundle(file, await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') }));
}

/**
 * Runs both workers with code that cannot replay, until deliveries were put back because their runs
 * did not ask in time, and then with the current code again. `useBundle` sets the code for the next
 * start of a worker.
 * @returns the number of deliveries that were put back meanwhile.
 */
export async function breakReplay(options: {
  workers: readonly AppProcess[];
  useBundle: (name: 'altered' | 'present') => void;
  lateMs: number;
  report: (line: string) => void;
}): Promise<number> {
  const { workers, useBundle, lateMs, report } = options;
  const startedAt = performance.now();
  useBundle('altered');
  await Promise.all(workers.map((worker) => worker.kill()));
  await wait(lateMs);
  let late = 0;
  for (let waits = 0; waits < 60; waits += 1) {
    late = await countLate(workers);
    if (late > 0) break;
    await wait(1_000);
  }
  useBundle('present');
  await Promise.all(workers.map((worker) => worker.kill()));
  report(`workers ran code that cannot replay, and put ${late} deliveries back (${secondsSince(startedAt)})`);
  return late;
}

/** Returns how many deliveries the running workers put back because their runs did not ask in time. */
export async function countLate(workers: readonly AppProcess[]): Promise<number> {
  const counts = await Promise.all(
    workers.map(async ({ metricsUrl }) => {
      try {
        const page = await (await fetch(`${metricsUrl}/metrics`, { signal: AbortSignal.timeout(2_000) })).text();
        const [, count = '0'] = /^org_api_deliveries_repaired_total\{[^}]*kind="late"[^}]*\} (\d+)/m.exec(page) ?? [];
        return Number(count);
      } catch {
        return 0;
      }
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Kills Temporal, deletes its store and starts it again with an empty one.
 * @returns how many deliveries had a run in the lost store that waited for its next attempt.
 */
export async function loseTemporalStore(
  pool: Pool,
  servers: ChaosServers,
  report: (line: string) => void,
): Promise<number> {
  await servers.kill('temporal');
  const { rows } = await pool.query<{ runs: number }>(
    `select count(*)::integer as runs from delivery where state = 'running'`,
  );
  servers.loseTemporalStore();
  await servers.restart('temporal');
  const { runs = 0 } = rows[0] ?? {};
  report(`Temporal lost its store with ${runs} runs`);
  return runs;
}

/** The rows that PostgreSQL forgot, and the posts that were made from them. */
export interface Forgotten {
  events: number;
  attempts: number;
  /** Positions in `posts` of those that came while a commit could be forgotten: from and before. */
  posts: { from: number; before: number };
}

const postsToForget = 10;
/** Less than `wal_writer_delay`, after which everything is written. */
const deadlineMs = 8_000;
const forgetfulSettings = { synchronous_commit: 'off', wal_writer_delay: '10s', wal_writer_flush_after: '1GB' };

/**
 * Lets PostgreSQL confirm commits that it has not written, kills it with SIGKILL after
 * `makeChanges` and some posts, and restarts it with its previous settings. The last commits are
 * lost, as after a failover to a standby that had not received them. Retries until an event and an
 * attempt were lost.
 */
export async function forgetLastCommits(options: {
  pool: Pool;
  servers: ChaosServers;
  makeChanges: () => Promise<void>;
  countPosts: () => number;
  report: (line: string) => void;
}): Promise<Forgotten> {
  const { pool, servers, makeChanges, countPosts, report } = options;
  const posts = { from: countPosts(), before: 0 };
  const forgotten: Forgotten = { events: 0, attempts: 0, posts };
  for (let tries = 0; tries < 5 && (forgotten.events === 0 || forgotten.attempts === 0); tries += 1) {
    for (const [name, value] of Object.entries(forgetfulSettings)) {
      await pool.query(`alter system set ${name} = '${value}'`);
    }
    await pool.query('select pg_reload_conf()');
    await wait(500);
    await makeChanges();
    const postsBefore = countPosts();
    await becomesTrue(() => countPosts() >= postsBefore + postsToForget, deadlineMs, 20);
    const before = await readIds(pool);
    await servers.kill('postgres');
    await servers.restart('postgres');
    posts.before = countPosts();
    const after = await untilAnswered(() => readIds(pool));
    await pool.query('alter system reset all');
    await pool.query('select pg_reload_conf()');
    forgotten.events += before.events.difference(after.events).size;
    forgotten.attempts += before.attempts.difference(after.attempts).size;
  }
  report(`PostgreSQL forgot ${forgotten.events} events and ${forgotten.attempts} attempts`);
  return forgotten;
}

async function readIds(pool: Pool): Promise<{ events: Set<string>; attempts: Set<string> }> {
  const list = async (query: string) => new Set((await pool.query<{ id: string }>(query)).rows.map(({ id }) => id));
  return {
    events: await list('select id::text as id from event'),
    attempts: await list(`select id::text as id from delivery_attempt`),
  };
}

async function untilAnswered<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (tries === 50) throw error;
      await wait(200);
    }
  }
}
