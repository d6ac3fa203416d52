import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { admitAttemptSql, recordOutcomeSql } from '#domain/db/statements/attempts.ts';
import { readLedgerSql } from '#domain/db/statements/ledger.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { refusedPost as refused } from '#test/post-outcomes.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { reconcile } from '../../apps/worker/relay/reconciler.ts';
import { createDeliveryActivities, type PostOutcome } from '../../workflows/deliver-event/activities.ts';
import { type AttemptInput, attemptTimeoutMs, type LostAttemptInput } from '../../workflows/deliver-event/types.ts';

describe('an attempt whose end Temporal did not hear of', () => {
  // Regression: it was closed at once, while its process could still be posting, so its successor
  // was a second post.
  it('stays open until it has expired, so that two posts of a delivery are never in progress', async () => {
    const { activities, input, pool } = await arrange();
    await admitAttempt(pool, input);
    const result = await activities.recordLostAttempt(input);
    expect(result).toEqual({ kind: 'underWay', waitMs: expect.any(Number) });
    expect('waitMs' in result && result.waitMs).toBeGreaterThan(attemptTimeoutMs - 10_000);
    expect((await pool.query('select cause from delivery_attempt')).rows).toEqual([{ cause: null }]);
  });

  it('is recorded as lost exactly once when two ask for it', async () => {
    const lost: unknown[] = [];
    const { activities, input, pool } = await arrange({ onLost: (one) => lost.push(one) });
    await admitAttempt(pool, input);
    await expire(pool);
    // A statement that began before another's commit still sees the attempt in progress, and
    // retries.
    const recordLost = async () => {
      const result = await activities.recordLostAttempt(input);
      return result.kind === 'underWay' ? await activities.recordLostAttempt(input) : result;
    };
    const results = await Promise.all([1, 2, 3].map(recordLost));
    expect(results.every(({ kind }) => kind === 'failed')).toBe(true);
    expect(lost).toHaveLength(1);
    expect((await pool.query('select cause from delivery_attempt')).rows).toEqual([{ cause: 'lost' }]);
  });

  it('is recorded as lost when it was in progress, and counts for the schedule', async () => {
    const { activities, input, pool } = await arrange();
    await admitAttempt(pool, input);
    await expire(pool);
    expect(await activities.recordLostAttempt(input)).toEqual({ kind: 'failed', waitMs: 60_000 });
    const { rows } = await pool.query('select cause, state from delivery_attempt join delivery using (event_id)');
    expect(rows).toEqual([{ cause: 'lost', state: 'waiting' }]);
  });

  // Regression: a short outage of the database used up an attempt of every due delivery.
  it('does not count for the schedule when it was never admitted', async () => {
    const { activities, input, pool } = await arrange();
    expect(await activities.recordLostAttempt(input)).toEqual({ kind: 'postponed', waitMs: 1_000 });
    const last = { ...input, nextDelayMs: null };
    expect(await activities.recordLostAttempt(last)).toEqual({ kind: 'postponed', waitMs: 1_000 });
    expect((await pool.query('select state from delivery')).rows).toEqual([{ state: 'waiting' }]);
  });

  it('continues from its recorded outcome when only the message about it was lost', async () => {
    const { activities, input, pool } = await arrange();
    await activities.attemptDelivery(input);
    const result = await activities.recordLostAttempt(input);
    expect(result).toMatchObject({ kind: 'failed', waitMs: expect.any(Number) });
    expect('waitMs' in result && result.waitMs).toBeGreaterThan(50_000);
    expect('waitMs' in result && result.waitMs).toBeLessThanOrEqual(60_000);
    await pool.query(`update delivery set state = 'delivered', next_attempt_at = null, settled_at = now()`);
    expect(await activities.recordLostAttempt(input)).toEqual({ kind: 'closed' });
  });
});

// Regression: a worker killed in the schedule's last attempt exhausted the delivery, which may
// never have reached the receiver.
describe('the schedule’s last attempt, whose end Temporal did not hear of', () => {
  it('is repeated three times, later each time, and then the delivery is exhausted with a proof', async () => {
    const { activities, input, pool } = await arrange();
    const last = { ...input, nextDelayMs: null };
    for (const [lostLast, leastMs] of [15_000, 30_000, 60_000].entries()) {
      await admitAttempt(pool, input, { isLast: true });
      await expire(pool);
      const result = await activities.recordLostAttempt({ ...last, lostLast });
      expect(result).toEqual({ kind: 'postponed', because: 'lost', waitMs: expect.any(Number) });
      expect('waitMs' in result && result.waitMs).toBeGreaterThanOrEqual(leastMs);
      const { rows } = await pool.query(
        'select state, next_attempt_at > clock_timestamp() + make_interval(secs => $1) as later from delivery',
        [leastMs / 1000 - 5],
      );
      expect(rows).toEqual([{ state: 'waiting', later: true }]);
      expect(await difference(pool)).toBe(0);
    }
    await admitAttempt(pool, input, { isLast: true });
    await expire(pool);
    expect(await activities.recordLostAttempt({ ...last, lostLast: 3 })).toEqual({ kind: 'exhausted' });
    expect((await pool.query('select state, attempts from delivery')).rows).toEqual([
      { state: 'exhausted', attempts: 4 },
    ]);
    expect(await difference(pool)).toBe(0);
  });
});

// Regression: a failover of PostgreSQL of more than five seconds closed accepted posts as lost, and
// repeated them.
describe('an outcome that arrives while the database is down', () => {
  it('is recorded when the database is back within the attempt’s time, and nothing is posted again', {
    timeout: 60_000,
  }, async () => {
    const awayMs = 8_000;
    const { owner, make, proxy, worker } = await setupProxied();
    let posts = 0;
    const { activities, input } = await arrange({
      at: { owner, make },
      pool: worker.pool,
      post: async () => {
        posts += 1;
        await proxy.refuse();
        setTimeout(() => void proxy.resume(), awayMs);
        return { ...refused, kind: 'delivered', status: 200, cause: 'accepted' };
      },
    });

    expect(await activities.attemptDelivery(input)).toEqual({ kind: 'delivered' });

    const { rows } = await owner.pool.query(
      `select cause, state, finished_at - started_at > interval '7 seconds' as late from delivery_attempt
        join delivery using (event_id)`,
    );
    expect(rows).toEqual([{ cause: 'accepted', state: 'delivered', late: true }]);
    expect(posts).toBe(1);
  });
});

describe('an attempt whose admission was committed while its reply was lost', () => {
  it('is found by the process that requested it, posted once, and uses up no other attempt', async () => {
    const { owner, make, proxy, worker } = await setupProxied();
    const { activities, input, posts } = await arrange({ at: { owner, make }, pool: worker.pool });
    // An open connection: what it sends arrives, and no answer returns.
    await worker.pool.query('select 1');
    proxy.dropReplies();
    const attempting = activities.attemptDelivery(input);
    const admitted = async () => (await owner.pool.query('select from concurrency_slot')).rowCount;
    await vi.waitFor(async () => expect(await admitted()).toBe(1), { timeout: 20_000, interval: 20 });
    expect(posts).toEqual([]);
    await proxy.refuse();
    await proxy.resume();

    expect(await attempting).toMatchObject({ kind: 'failed' });

    expect(posts).toHaveLength(1);
    const { rows } = await owner.pool.query(
      'select number, cause, attempts from delivery_attempt join delivery using (event_id)',
    );
    expect(rows).toEqual([{ number: 1, cause: 'answered_server_error', attempts: 1 }]);
    expect(await admitted()).toBe(0);
  });

  it('is requested again when it was not committed', async () => {
    const { owner, make, proxy, worker } = await setupProxied();
    const { activities, input, posts } = await arrange({ at: { owner, make }, pool: worker.pool });
    await worker.pool.query('select 1');
    proxy.pause();
    const attempting = activities.attemptDelivery(input);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await proxy.refuse();
    await proxy.resume();
    expect(await attempting).toMatchObject({ kind: 'failed' });
    expect(posts).toHaveLength(1);
  });
});

describe('an outcome whose attempt PostgreSQL lost in a failover', () => {
  /**
   * Removes the last second's commits, like a promoted standby that lacks them: the admission, and
   * the given rows.
   */
  const forgetAdmission = async (pool: Pool) => {
    await pool.query('delete from delivery_attempt');
    await pool.query('delete from concurrency_slot');
    await pool.query('update delivery set attempts = 0');
  };
  const accepted: PostOutcome = { ...refused, kind: 'delivered', status: 200, cause: 'accepted' };

  it('is written again with its attempt, and the receiver that accepted it gets no second post', async () => {
    const { activities, input, pool, posts } = await arrange({
      post: async () => {
        await forgetAdmission(pool);
        return accepted;
      },
    });
    expect(await activities.attemptDelivery(input)).toEqual({ kind: 'delivered' });
    const { rows } = await pool.query(
      `select number, a.round, is_last, cause, status, cardinality(signed_with) as secrets, attempts, state
       from delivery_attempt a join delivery using (event_id)`,
    );
    expect(rows).toEqual([
      {
        number: 1,
        round: 1,
        is_last: false,
        cause: 'accepted',
        status: 200,
        secrets: 1,
        attempts: 1,
        state: 'delivered',
      },
    ]);
    expect(await difference(pool)).toBe(0);
    expect(await activities.attemptDelivery(input)).toEqual({ kind: 'closed' });
    expect(posts).toHaveLength(1);
  });

  it('gets the next number when another attempt has its own, whose outcome is unchanged', async () => {
    const { activities, input, pool } = await arrange({
      post: async () => {
        await forgetAdmission(pool);
        await admitAttempt(pool, input);
        return refused;
      },
    });
    expect(await activities.attemptDelivery(input)).toMatchObject({ kind: 'failed' });
    const { rows } = await pool.query('select number, cause from delivery_attempt order by number');
    expect(rows).toEqual([
      { number: 1, cause: null },
      { number: 2, cause: 'answered_server_error' },
    ]);
    expect((await pool.query('select attempts from delivery')).rows).toEqual([{ attempts: 2 }]);
  });

  it('is written once, also when the statement is repeated', async () => {
    const { activities, input, pool } = await arrange({
      post: async () => {
        await forgetAdmission(pool);
        return refused;
      },
    });
    const recorded: unknown[][] = [];
    const query = vi.spyOn(pool, 'query');
    onTestFinished(() => query.mockRestore());
    await activities.attemptDelivery(input);
    for (const [call] of query.mock.calls as unknown as [{ name?: string; values: unknown[] }][]) {
      if (call.name === 'recordOutcome') recorded.push(call.values);
    }
    const [values] = recorded;
    const before = (await pool.query('select * from delivery')).rows;
    expect((await pool.query(recordOutcomeSql, values)).rows).toEqual([{ recorded: false, hasDelivery: true }]);
    expect((await pool.query('select number from delivery_attempt')).rows).toEqual([{ number: 1 }]);
    expect((await pool.query('select * from delivery')).rows).toEqual(before);
  });

  it('is reported as an internal error when its delivery is missing too', async () => {
    const errors: string[] = [];
    const { activities, input, pool } = await arrange({
      post: async () => {
        await forgetAdmission(pool);
        await pool.query('delete from delivery');
        await pool.query('delete from event');
        return accepted;
      },
      onInternalError: (error, { eventId }, code) => errors.push(`${code} ${eventId} ${(error as Error).message}`),
    });
    expect(await activities.attemptDelivery(input)).toEqual({ kind: 'delivered' });
    expect(errors).toEqual([
      `delivery_missing ${input.eventId} attempt 1 ended (accepted), but its delivery is not in the database any more`,
    ]);
  });
});

/** Moves the admissions of attempts in progress to the maximum age of an attempt. */
async function expire(pool: Pool): Promise<void> {
  await pool.query(
    'update delivery_attempt set started_at = started_at - make_interval(secs => $1) where finished_at is null',
    [attemptTimeoutMs / 1000],
  );
}

/** Returns the ledger's difference. */
async function difference(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ ledger: { difference: number } }>(readLedgerSql);
  return Number(rows[0]?.ledger.difference);
}

describe('a round’s first attempt that is requested twice', () => {
  it('is not repeated: it is in progress for as long as an attempt may take, and then lost', async () => {
    const { activities, input, pool, posts } = await arrange({ post: () => new Promise(() => {}) });
    const first = { ...input, onlyAsFirst: true };
    void activities.attemptDelivery(first); // its process is killed while the post is in progress
    await vi.waitFor(() => expect(posts).toHaveLength(1));
    expect(await activities.attemptDelivery(first)).toEqual({ kind: 'begun' });

    const young = await activities.recordLostAttempt(input);
    expect(young).toEqual({ kind: 'underWay', waitMs: expect.any(Number) });
    expect('waitMs' in young && young.waitMs).toBeGreaterThan(attemptTimeoutMs - 10_000);
    expect('waitMs' in young && young.waitMs).toBeLessThanOrEqual(attemptTimeoutMs);
    await expire(pool);
    expect(await activities.recordLostAttempt(input)).toMatchObject({ kind: 'failed' });
    expect(posts).toHaveLength(1);
  });

  it('continues from the outcome of the first request', async () => {
    const { activities, input, posts } = await arrange();
    const first = { ...input, onlyAsFirst: true };
    expect(await activities.attemptDelivery(first)).toMatchObject({ kind: 'failed' });
    expect(await activities.attemptDelivery(first)).toEqual({ kind: 'begun' });
    expect(await activities.recordLostAttempt(input)).toMatchObject({ kind: 'failed' });
    expect(posts).toHaveLength(1);
    expect(await activities.attemptDelivery(input)).toMatchObject({ kind: 'failed' }); // the second of the schedule
    expect(posts).toHaveLength(2);
  });
});

describe('a delivery without a free slot', () => {
  it('retries in a second, and waits for its turn once the receiver seems to hang', async () => {
    const { activities, input, pool, make } = await arrange({ post: () => new Promise(() => {}) });
    for (let count = 0; count < 10; count += 1) await make();
    const { rows } = await pool.query<{ id: string }>('select event_id as id from delivery where event_id <> $1', [
      input.eventId,
    ]);
    for (const { id } of rows) void activities.attemptDelivery({ ...input, eventId: id });
    await vi.waitFor(async () => {
      const open = await pool.query('select from delivery_attempt where finished_at is null');
      expect(open.rowCount).toBe(10);
    });
    const waitAfter = async (seconds: number) => {
      await pool.query('update concurrency_slot set started_at = clock_timestamp() - make_interval(secs => $1)', [
        seconds,
      ]);
      const result = await activities.attemptDelivery(input);
      expect(result.kind).toBe('postponed');
      return 'waitMs' in result ? result.waitMs : 0;
    };
    expect(await waitAfter(0)).toBe(1_000);
    const hanging = await waitAfter(4);
    expect(hanging).toBeGreaterThan(5_000);
    expect(hanging).toBeLessThanOrEqual(7_000);
  });
});

describe('an internal error in an attempt', () => {
  it('reaches Temporal without its message, and the log with it', async () => {
    const faults: unknown[] = [];
    const { activities, input } = await arrange({
      post: () => Promise.reject(new Error('it quotes a secret')),
      onInternalError: (error, _, code) => faults.push([code, error]),
    });
    const failure = await activities.attemptDelivery(input).catch((error: Error) => error);
    expect(failure).toMatchObject({ message: 'internal error; see the worker log', stack: '' });
    expect((failure as Error).cause).toBeUndefined();
    expect(faults).toEqual([['activity_failed', new Error('it quotes a secret')]]);
  });
});

describe('the reconciler', () => {
  it('finds the delivery without a workflow behind any number of late ones with one', async () => {
    const { pool, make, input } = await arrange();
    for (let count = 0; count < 5; count += 1) await make();
    await pool.query(`update delivery set started = true, next_attempt_at = now() - interval '10 minutes'`);
    await pool.query(`update delivery set next_attempt_at = now() - interval '5 minutes' where event_id = $1`, [
      input.eventId,
    ]);
    const getStatus = async ({ eventId }: { eventId: string }) => (eventId === input.eventId ? 'ended' : 'busy');
    const calls = { getStatus, retryNow: async () => {}, terminate: async () => {} };
    const options = { pool, ...calls, overdueMs: 60_000, pageSize: 2 } as const;
    expect(await reconcile({ ...options, signal: new AbortController().signal })).toMatchObject({
      begun: 1,
      retriesRequested: 0,
    });
    const { rows } = await pool.query('select event_id, started from delivery where round = 2');
    expect(rows).toEqual([{ event_id: input.eventId, started: false }]);
  });
});

/** Admits an attempt as an activity would that is killed next. */
const admitAttempt = (pool: Pool, input: AttemptInput, { isLast = false } = {}) =>
  pool.query(admitAttemptSql, [
    input.organizationId,
    input.webhookId,
    input.eventId,
    input.round,
    isLast,
    false,
    randomUUID(),
  ]);

/** A database with a worker's pool that connects through a proxy. */
async function setupProxied() {
  const { database, owner, make } = await setupDatabase();
  const url = new URL(database.urls.worker);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  url.hostname = '127.0.0.1';
  const worker = await openDatabase({ server: parsePostgresUrl(url.href), applicationName: 'test', poolMax: 2 });
  onTestFinished(() => worker.close());
  return { owner, make, proxy, worker };
}

async function arrange({
  at,
  ...replaced
}: Partial<Parameters<typeof createDeliveryActivities>[0]> & {
  at?: Pick<Awaited<ReturnType<typeof setupDatabase>>, 'owner' | 'make'>;
} = {}) {
  const { owner, make } = at ?? (await setupDatabase());
  const { pool } = owner;
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
  await make.grant({ professional });
  const { rows } = await pool.query<{ id: string }>('select id from event');
  const input: AttemptInput & LostAttemptInput = {
    organizationId: professional.orgId,
    webhookId: webhook.id,
    eventId: rows[0]?.id ?? '',
    round: 1,
    nextDelayMs: 60_000,
    internalErrors: 0,
    lostLast: 0,
  };
  const posts: string[] = [];
  const { post = async () => refused, ...others } = replaced;
  const activities = createDeliveryActivities({
    pool,
    sign: () => ({}),
    ...others,
    post: (request) => {
      posts.push(request.url);
      return post(request);
    },
  });
  return { pool, input, posts, activities, make: () => make.grant({ professional }) };
}
