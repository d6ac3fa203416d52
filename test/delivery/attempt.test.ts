import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type AttemptLine, type AttemptOptions, createAttempts } from '#delivery/attempt.ts';
import { postOnce } from '#delivery/post/post.ts';
import type { PostResult } from '#delivery/post/result.ts';
import { createTestActivities } from '#delivery/send-test.ts';
import { signWith, unsealCustomHeaders } from '#delivery/sender.ts';
import { claimDeliveriesSql } from '#delivery/sql/claim.ts';
import { recordOutcomeSql } from '#delivery/sql/outcome.ts';
import { repairDeliveriesSql } from '#delivery/sql/repair.ts';
import { postUntilMs } from '#delivery/times.ts';
import { openDatabase } from '#domain/open-database.ts';
import { getCauseProperties } from '#domain/webhooks/causes.ts';
import { readLedgerSql } from '#domain/webhooks/ledger-statements.ts';
import { sealHeaders } from '#domain/webhooks/seal.ts';
import { createResolve } from '#runtime/egress/resolve.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { rejectedPost as rejected } from '#test/post-results.ts';
import { startReceiver } from '#test/receiver.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { workerEnvironment } from '#test/worker.ts';
import type { AttemptInput } from '#workflows/deliver-event/types.ts';
import { readConfig } from '../../apps/worker/config.ts';

const timeout = 60_000;
const accepted: PostResult = { ...rejected, outcome: 'delivered', status: 200, cause: 'accepted' };
const hang = () => new Promise<never>(() => {});

describe('an attempt', () => {
  it('is answered with the wait of its position in the schedule, and the last one ends the run', async () => {
    const { ask, makeDue, lines, pool } = await arrange({ delaysMs: [60_000, 120_000] });
    for (const waitMs of [60_000, 120_000]) {
      const next = await ask();
      expect(next).toEqual({ kind: 'wait', waitMs: expect.any(Number), isInternalError: false });
      expect(getWaitMs(next)).toBeGreaterThanOrEqual(waitMs);
      expect(getWaitMs(next)).toBeLessThanOrEqual(1.1 * waitMs);
      await makeDue();
    }
    expect(await ask()).toEqual({ kind: 'end' });
    expect(lines.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'exhausted'],
    ]);
    const { rows } = await pool.query('select ends_schedule from delivery_attempt order by number');
    expect(rows.map(({ ends_schedule }) => ends_schedule)).toEqual([false, false, true]);
    expect(await difference(pool)).toBe(0);
  });

  it.each([
    ['is halved when the receiver accepts after more than 3 s', null, 3],
    ['is doubled when the look-up of its name took most of that', 3_500, 10],
  ])('leaves a concurrency that %s', async (_what, dns, concurrency) => {
    const timingsMs = { ...accepted.timingsMs, dns, total: 4_000 };
    const { ask, pool } = await arrange({ post: async () => ({ ...accepted, timingsMs }) });
    await pool.query('update receiver set concurrency = 6');
    await ask();
    expect((await pool.query('select concurrency from receiver')).rows).toEqual([{ concurrency }]);
  });

  it('that is not due waits until it is, and none follows a 2xx', async () => {
    const { ask, posts, makeDue } = await arrange({ post: async () => (posts.length === 1 ? rejected : accepted) });
    const first = await ask();
    const early = await ask();
    expect(early).toMatchObject({ kind: 'wait', isInternalError: false });
    expect(getWaitMs(early)).toBeGreaterThan(getWaitMs(first) - 10_000);
    expect(getWaitMs(early)).toBeLessThanOrEqual(getWaitMs(first));
    await makeDue();
    expect(await ask()).toEqual({ kind: 'end' });
    expect(await ask()).toEqual({ kind: 'end' });
    expect(posts).toHaveLength(2);
  });

  it('is signed with both secrets during a rotation, newest first, and not with an expired one', async () => {
    const signed: string[] = [];
    const { ask, pool } = await arrange({
      sign: (_, { sealed }) => {
        signed.push(...sealed.map(String));
        return {};
      },
    });
    await pool.query(
      `with old as (
         update webhook_secret set valid_until = now() + interval '1 hour', sealed = 'old'
           returning organization_id, webhook_id
       )
       insert into webhook_secret (organization_id, webhook_id, sealed, valid_until)
       select o.organization_id, o.webhook_id, s.sealed, s.valid_until
       from old o cross join (values ('new'::bytea, null::timestamptz), ('over', now())) s (sealed, valid_until)`,
    );
    await ask();
    expect(signed).toEqual(['new', 'old']);
  });

  it('whose run has a newer one is not made', async () => {
    const { ask, posts, pool } = await arrange();
    await pool.query('update delivery set run = 2');
    expect(await ask()).toEqual({ kind: 'end' });
    expect(posts).toEqual([]);
  });

  it('that is asked for again while it may be in progress is made once its slot has ended', async () => {
    let isKilled = true;
    const { ask, posts, pool, repair, makeDue } = await arrange({
      post: () => (isKilled ? hang() : Promise.resolve(accepted)),
    });
    void ask(); // its process is killed while the post is in progress
    await vi.waitFor(() => expect(posts).toHaveLength(1), { timeout: 30_000 });
    isKilled = false;
    const again = await ask();
    expect(again).toMatchObject({ kind: 'wait', isInternalError: false });
    expect(getWaitMs(again)).toBeGreaterThan(20_000);
    expect(getWaitMs(again)).toBeLessThanOrEqual(26_000);
    expect(posts).toHaveLength(1);

    expect(await repair()).toMatchObject([{ kind: 'lost', number: 1, state: 'queued' }]);
    await makeDue();
    expect(await ask()).toEqual({ kind: 'end' });
    expect(posts).toHaveLength(2);
    const { rows } = await pool.query('select number, cause from delivery_attempt order by number');
    expect(rows).toEqual([
      { number: 1, cause: 'lost' },
      { number: 2, cause: 'accepted' },
    ]);
    expect(await difference(pool)).toBe(0);
  });

  it('that kills its process each time is made at most three times more than the schedule has attempts', async () => {
    const { ask, posts, pool, repair, makeDue } = await arrange({ delaysMs: [60_000], post: hang });
    for (let count = 1; count <= 5; count += 1) {
      void ask();
      await vi.waitFor(() => expect(posts).toHaveLength(count), { timeout: 30_000 });
      expect(await repair()).toMatchObject([{ kind: 'lost', state: count < 5 ? 'queued' : 'exhausted' }]);
      await makeDue();
    }
    expect(await ask()).toEqual({ kind: 'end' });
    expect(posts).toHaveLength(5);
    const { rows } = await pool.query('select ends_schedule, cause from delivery_attempt order by number');
    expect(rows).toEqual([false, true, true, true, true].map((ends_schedule) => ({ ends_schedule, cause: 'lost' })));
    expect(await difference(pool)).toBe(0);
  });
});

describe('an outcome that arrives while the database is down', () => {
  it('is recorded when the database is back within the attempt’s time, and nothing is posted again', {
    timeout,
  }, async () => {
    const unavailableMs = 6_000;
    const proxied = await setupProxied();
    const { ask, posts, pool } = await arrange({
      proxied,
      post: async () => {
        await proxied.proxy.reject();
        setTimeout(() => void proxied.proxy.resume(), unavailableMs);
        return accepted;
      },
    });

    expect(await ask()).toEqual({ kind: 'end' });

    const { rows } = await pool.query(
      `select cause, state, finished_at - started_at > interval '5 seconds' as late from delivery_attempt
        join delivery using (event_id)`,
    );
    expect(rows).toEqual([{ cause: 'accepted', state: 'delivered', late: true }]);
    expect(posts).toHaveLength(1);
  });
});

// An accepted post stays accepted, however long another session holds one of its rows.
describe('an outcome whose statement PostgreSQL ends', () => {
  it.each(['receiver', 'delivery'])(
    'is recorded once another session lets go of its %s, and nothing is posted again',
    async (table) => {
      const proxied = await setupProxied({ statementTimeoutMs: 500 });
      const { ask, posts, pool, errors } = await arrange({
        proxied,
        post: async () => {
          const connection = await pool.connect();
          await connection.query('begin');
          await connection.query(`select from ${table} for update`);
          setTimeout(() => void connection.query('rollback').finally(() => connection.release()), 1_500);
          return accepted;
        },
      });
      await pool.query('update receiver set concurrency = 5'); // so that its row changes

      expect(await ask()).toEqual({ kind: 'end' });

      const { rows } = await pool.query(
        'select cause, state, attempts from delivery_attempt join delivery using (event_id)',
      );
      expect(rows).toEqual([{ cause: 'accepted', state: 'delivered', attempts: 1 }]);
      expect((await pool.query('select concurrency from receiver')).rows).toEqual([{ concurrency: 10 }]);
      expect([posts.length, errors]).toEqual([1, []]);
    },
  );
});

it('an outcome is recorded once the login of its worker is accepted again, and nothing is posted again', {
  timeout,
}, async () => {
  const { proxy, ...servers } = await setupProxied();
  let isRejected = false;
  const server = parsePostgresUrl(servers.database.urls.worker);
  const worker = await openDatabase({
    server: () => ({
      ...server,
      host: '127.0.0.1',
      port: proxy.port,
      password: isRejected ? 'replaced' : server.password,
    }),
    applicationName: 'test',
    poolMax: 2,
  });
  onTestFinished(() => worker.close());
  const errors: unknown[] = [];
  const { ask, posts, pool } = await arrange({
    proxied: { ...servers, proxy, worker },
    errors,
    post: async () => {
      isRejected = true;
      await proxy.reject();
      await proxy.resume();
      await vi.waitFor(() => expect(worker.pool.query('select')).rejects.toMatchObject({ code: '28P01' }), 10_000);
      setTimeout(() => {
        isRejected = false;
      }, 1_500);
      return accepted;
    },
  });

  expect(await ask()).toEqual({ kind: 'end' });

  const { rows } = await pool.query('select cause, state from delivery_attempt join delivery using (event_id)');
  expect(rows).toEqual([{ cause: 'accepted', state: 'delivered' }]);
  expect([posts.length, errors]).toEqual([1, []]);
});

describe('an attempt whose admission was committed while its reply was lost', () => {
  it('is found by the process that requested it, posted once, and uses up no other attempt', async () => {
    const proxied = await setupProxied();
    const { ask, posts, pool } = await arrange({ proxied });
    // An open connection: what it sends arrives, and no response returns.
    await proxied.worker.pool.query('select 1');
    proxied.proxy.dropReplies();
    const attempting = ask();
    const admitted = async () => (await pool.query('select from slot where attempt_id is not null')).rowCount;
    await vi.waitFor(async () => expect(await admitted()).toBe(1), { timeout: 20_000, interval: 20 });
    expect(posts).toEqual([]);
    await proxied.proxy.reject();
    await proxied.proxy.resume();

    expect(await attempting).toMatchObject({ kind: 'wait' });

    expect(posts).toHaveLength(1);
    const { rows } = await pool.query(
      'select number, cause, attempts from delivery_attempt join delivery using (event_id)',
    );
    expect(rows).toEqual([{ number: 1, cause: 'answered_server_error', attempts: 1 }]);
    expect((await pool.query('select from slot')).rowCount).toBe(0);
  });

  it('is requested again when it was not committed', async () => {
    const proxied = await setupProxied();
    const { ask, posts } = await arrange({ proxied });
    await proxied.worker.pool.query('select 1');
    proxied.proxy.pause();
    const attempting = ask();
    await wait(100);
    await proxied.proxy.reject();
    await proxied.proxy.resume();
    expect(await attempting).toMatchObject({ kind: 'wait' });
    expect(posts).toHaveLength(1);
  });

  it('asks again later, and not at once, when PostgreSQL does not answer in time', { timeout }, async () => {
    const proxied = await setupProxied();
    const { ask, posts } = await arrange({ proxied });
    await proxied.proxy.reject();
    const next = await ask({ internalErrors: 1 });
    expect(next).toMatchObject({ kind: 'wait', isInternalError: true });
    expect(getWaitMs(next)).toBeGreaterThanOrEqual(4_000);
    expect(posts).toEqual([]);
  });
});

describe('an outcome whose attempt PostgreSQL lost in a failover', () => {
  /** Removes the last second's commits, like a promoted standby that lacks them. */
  const loseAdmission = async (pool: Pool) => {
    await pool.query('delete from delivery_attempt');
    await pool.query('delete from slot');
    await pool.query('update delivery set attempts = 0');
  };

  it('is written again with its attempt, and the receiver that accepted it gets no second post', async () => {
    const { ask, pool, posts } = await arrange({
      post: async () => {
        await loseAdmission(pool);
        return accepted;
      },
    });
    expect(await ask()).toEqual({ kind: 'end' });
    const { rows } = await pool.query(
      `select number, a.run, ends_schedule, cause, status, cardinality(signed_with) as secrets, attempts, state
       from delivery_attempt a join delivery using (event_id)`,
    );
    const attempt = { number: 1, run: 1, ends_schedule: false, cause: 'accepted', status: 200, secrets: 1 };
    expect(rows).toEqual([{ ...attempt, attempts: 1, state: 'delivered' }]);
    expect(await difference(pool)).toBe(0);
    expect(await ask()).toEqual({ kind: 'end' });
    expect(posts).toHaveLength(1);
  });

  it('is written once, also when the statement is repeated', async () => {
    const { ask, pool } = await arrange({
      post: async () => {
        await loseAdmission(pool);
        return rejected;
      },
    });
    const query = vi.spyOn(pool, 'query');
    onTestFinished(() => query.mockRestore());
    await ask();
    const calls = query.mock.calls as unknown as [{ name?: string; values: unknown[] }][];
    const values = calls.find(([call]) => call.name === 'recordOutcome')?.[0].values;
    const rowsNow = async () => [
      (await pool.query('select * from delivery')).rows,
      (await pool.query('select * from delivery_attempt')).rows,
    ];
    const before = await rowsNow();
    await pool.query(recordOutcomeSql, values);
    expect(await rowsNow()).toEqual(before);
    expect(before[1]).toMatchObject([{ number: 1 }]);
  });

  it('is reported as an internal error when its delivery is missing too', async () => {
    const { ask, pool, input, errors } = await arrange({
      post: async () => {
        await loseAdmission(pool);
        await pool.query('delete from delivery');
        await pool.query('delete from event');
        return accepted;
      },
    });
    expect(await ask()).toEqual({ kind: 'end' });
    expect(errors).toEqual([
      [
        'delivery_missing',
        input.eventId,
        'attempt 1 ended (accepted), but its delivery is not in the database any more',
      ],
    ]);
  });
});

describe('an internal error in an attempt', () => {
  it('reaches Temporal without its message, and the log with it', async () => {
    const { ask, input, errors } = await arrange({ post: () => Promise.reject(new Error('it quotes a secret')) });
    const failure = await ask().catch((error: Error) => error);
    expect(failure).toMatchObject({ message: 'internal error; see the worker log', stack: '' });
    expect((failure as Error).cause).toBeUndefined();
    expect(errors).toEqual([['activity_failed', input.eventId, 'it quotes a secret']]);
  });
});

/**
 * Errors before the first byte of a request is sent, and the recorded cause. None is
 * `lost`, and none uses up the schedule.
 */
describe('an attempt that fails before anything is sent', () => {
  it.each([
    ['its webhook has no secret', `delete from webhook_secret`],
    ['its secret does not open', `update webhook_secret set sealed = 'damaged'`],
    ['the row with its body is missing', `set session_replication_role = replica; delete from event`],
    ['its stored URL cannot be read', `update webhook set url = 'https:/'`],
    ['its stored URL is none that a registration takes', `update webhook set url = 'https://user@127.0.0.1/'`],
  ])('is recorded as an internal error when %s, and does not count', async (_, damage) => {
    const { ask, pool, errors, receiver } = await arrangeReal();
    await pool.query(damage);
    await pool.query('update receiver set concurrency = 7');
    await pool.query('update delivery set failures = 12');

    const next = await ask({ internalErrors: 3 });

    // Not exhausted, although it is the schedule's last: the same attempt is repeated, and the wait
    // grows with the number of errors.
    expect(next).toMatchObject({ kind: 'wait', isInternalError: true });
    expect(getWaitMs(next)).toBeGreaterThanOrEqual(120_000);
    const { rows } = await pool.query('select cause, explanation, status, ends_schedule from delivery_attempt');
    const { explanation } = getCauseProperties('internal_error');
    expect(rows).toEqual([{ cause: 'internal_error', explanation, status: null, ends_schedule: true }]);
    const { rows: states } = await pool.query('select state, attempts, failures from delivery');
    expect(states).toEqual([{ state: 'running', attempts: 1, failures: 12 }]);
    const { rows: receivers } = await pool.query('select failing_since, concurrency from receiver');
    expect(receivers).toEqual([{ failing_since: null, concurrency: 7 }]);
    expect(receiver.received).toEqual([]);
    expect(errors).toHaveLength(1);
  });

  it('is recorded as an internal error when its admission took so long that the attempt could outlast its limit', {
    timeout,
  }, async () => {
    const { ask, pool, receiver } = await arrangeReal();
    const holder = await pool.connect();
    await holder.query('begin');
    await holder.query('select from slot for update');
    const attempt = ask();
    await wait(postUntilMs + 500);
    await holder.query('commit');
    holder.release();
    expect(await attempt).toMatchObject({ kind: 'wait', isInternalError: true });
    expect((await pool.query('select cause from delivery_attempt')).rows).toEqual([{ cause: 'internal_error' }]);
    expect(receiver.received).toEqual([]);
  });
});

describe('custom headers', () => {
  const owner = ({ organizationId, webhookId }: AttemptInput) => ({ organizationId, webhookId });
  const store = (pool: Pool, sealed: Buffer) =>
    pool.query(`update webhook set header_names = '{X-Key}', headers_sealed = $1`, [sealed]);

  it('are part of every request, and their names alone of its record', async () => {
    const sent: Record<string, string>[] = [];
    const { ask, pool, input } = await arrangeReal({
      post: async ({ customHeaders }) => {
        sent.push(customHeaders);
        return accepted;
      },
    });
    await store(pool, sealHeaders([{ name: 'X-Key', value: 'marker' }], owner(input), testSealingKeys));
    expect(await ask()).toEqual({ kind: 'end' });
    expect(sent).toEqual([{ 'X-Key': 'marker' }]);
    const { rows } = await pool.query<{ headers: object }>('select headers from delivery_attempt');
    expect(rows[0]?.headers).toMatchObject({ 'X-Key': null, 'webhook-id': input.eventId });
  });

  it('that cannot be unsealed are an internal error, and nothing is sent without them', async () => {
    const errors: unknown[] = [];
    const { ask, pool, input, posts } = await arrangeReal({ errors });
    const elsewhere = { ...owner(input), webhookId: input.eventId };
    await store(pool, sealHeaders([{ name: 'X-Key', value: 'marker' }], elsewhere, testSealingKeys));
    expect(await ask()).toMatchObject({ kind: 'wait', isInternalError: true });
    expect(posts).toEqual([]);
    const says = expect.stringContaining("set the webhook's custom headers again");
    expect(errors).toEqual([['internal_error', input.eventId, says]]);
    const { rows } = await pool.query('select cause, headers from delivery_attempt');
    expect(rows).toEqual([{ cause: 'internal_error', headers: null }]);
  });
});

// Receivers reject a post whose time is five minutes off, and clocks of workers may be wrong.
it('signatures contain the time of PostgreSQL’s clock, whatever the worker’s clock shows', async () => {
  const { ask, owner, pool, input, sender, receiver } = await arrangeReal();
  const { rows } = await pool.query<{ now: number }>('select extract(epoch from clock_timestamp())::float8 as now');
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 });
  try {
    await ask();
    await createTestActivities({ ...sender, database: owner }).postTest({ ...input, eventType: 'client.started' });
  } finally {
    vi.useRealTimers();
  }
  expect(receiver.received).toHaveLength(2);
  for (const { headers } of receiver.received) {
    expect(Math.abs(Number(headers['webhook-timestamp']) - Number(rows[0]?.now))).toBeLessThan(60);
    expect(headers['service-signature']).toContain(`t=${headers['webhook-timestamp']},`);
  }
});

const getWaitMs = (next: object): number => ('waitMs' in next ? Number(next.waitMs) : Number.NaN);

/** Returns the ledger's difference. */
async function difference(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ ledger: { difference: number } }>(readLedgerSql);
  return Number(rows[0]?.ledger.difference);
}

/** A database with a worker's pool that connects through a proxy. */
async function setupProxied({ statementTimeoutMs = 5_000 } = {}) {
  const servers = await setupDatabase();
  const url = new URL(servers.database.urls.worker);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  url.hostname = '127.0.0.1';
  const server = parsePostgresUrl(url.href);
  const worker = await openDatabase({ server, applicationName: 'test', poolMax: 2, statementTimeoutMs });
  onTestFinished(() => worker.close());
  return { ...servers, proxy, worker };
}

interface ArrangeOptions extends Partial<Pick<AttemptOptions, 'post' | 'sign' | 'unsealCustomHeaders' | 'delaysMs'>> {
  /** A database whose attempts use the pool of a proxy. */
  proxied?: Awaited<ReturnType<typeof setupProxied>>;
  url?: string;
  /** Where internal errors are noted. */
  errors?: unknown[];
}

/** One delivery that a relay has claimed, and the activity that its run calls. */
async function arrange({ proxied, url = 'http://127.0.0.1:9/', errors = [], ...replaced }: ArrangeOptions = {}) {
  const { database, owner, make } = proxied ?? (await setupDatabase());
  const { pool } = owner;
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url });
  await make.grant({ professional });
  const delaysMs = replaced.delaysMs ?? Array(12).fill(60_000);
  const { rows } = await pool.query<AttemptInput>(claimDeliveriesSql, [[webhook.orgId], [webhook.id], 10, 10, 10]);
  const [claimed] = rows;
  if (claimed === undefined) throw new Error('nothing was claimed');
  const { organizationId, webhookId, eventId, run, type, dueAtMs } = claimed;
  const input: AttemptInput = { organizationId, webhookId, eventId, run, type, dueAtMs, internalErrors: 0 };
  const posts: string[] = [];
  const lines: AttemptLine[] = [];
  const { post = async () => rejected, sign = () => ({}), unsealCustomHeaders = () => ({}) } = replaced;
  const { attemptDelivery } = createAttempts({
    pool: proxied?.worker.pool ?? pool,
    delaysMs,
    sign,
    unsealCustomHeaders,
    post: (request) => {
      posts.push(request.url);
      return post(request);
    },
    onStarted: () => {},
    onEnded: (_, __, line) => void (line === null ? null : lines.push(line)),
    onInternalError: (error, { eventId: id }, code) => errors.push([code, id, (error as Error).message]),
  });
  return {
    database,
    owner,
    pool,
    input,
    posts,
    lines,
    errors,
    ask: (more: Partial<AttemptInput> = {}) => attemptDelivery({ ...input, ...more }),
    /** Makes the delivery due, as time does. */
    makeDue: () => pool.query(`update delivery set due_at = now() where due_at is not null`),
    /** Ends the time of the slots, and repairs. */
    async repair() {
      await pool.query('update slot set until = now()');
      return (await pool.query(repairDeliveriesSql, [delaysMs.length + 4, 60, delaysMs])).rows;
    },
  };
}

/** The same with real signatures, and posts to a real receiver. */
async function arrangeReal({ errors = [], ...replaced }: Pick<ArrangeOptions, 'errors' | 'post'> = {}) {
  const receiver = await startReceiver();
  const config = readConfig(workerEnvironment({ urls: { worker: 'postgres://worker@localhost/none' } } as never));
  const sender = {
    sign: signWith(() => config.webhookSecretKeys),
    unsealCustomHeaders: ((webhook, sealed) =>
      unsealCustomHeaders(webhook, sealed, config.webhookSecretKeys)) satisfies AttemptOptions['unsealCustomHeaders'],
    post: (request: Parameters<AttemptOptions['post']>[0]) =>
      postOnce({
        ...request,
        allow: config.webhookAllow,
        resolve: createResolve(),
        onInternalError: (error) => errors.push(error),
      }),
  };
  const arranged = await arrange({ ...sender, ...replaced, url: receiver.url, errors });
  return { ...arranged, receiver, sender: { ...sender, onInternalError: () => {} } };
}
