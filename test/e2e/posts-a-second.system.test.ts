/** The bound of a webhook's posts a second, at real receivers, with two worker processes. */
import { expect, inject, it, vi } from 'vitest';
import { reservedMs } from '#delivery/times.ts';
import type { EventType } from '#domain/contract/events.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { startChildWorker } from '#test/child-worker.ts';
import { countDeliveries } from '#test/count-deliveries.ts';
import type { MadeWebhook } from '#test/make.ts';
import { startReceiver } from '#test/receiver.ts';
import { testAllowList } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { workerEnvironment } from '#test/worker.ts';

const timeout = 240_000;
const patient = { timeout: 120_000, interval: 20 };

/** A post: when PostgreSQL admitted its attempt, and when its receiver had it, on one machine's clock. */
interface Post {
  number: number;
  admittedAtMs: number;
  receivedAtMs: number;
}

it('two workers together send a webhook no more than its bound, reach it, and slow no other; retries count, and a change or an end of the bound takes effect', {
  timeout,
}, async () => {
  const t = await arrange();
  const steady = await t.hook({ eventTypes: ['seat.given', 'client.started'], rate: 5 });
  const flaky = await t.hook({ eventTypes: ['seat.ended'], rate: 5 });
  const free = await t.hook({ eventTypes: ['seat.given'], rate: null });
  let firstOnes = 0;
  flaky.receiver.respond = (response, { headers }) => {
    const fails = headers['webhook-attempt'] === '1' && ++firstOnes % 3 === 0;
    response.writeHead(fails ? 503 : 200).end();
  };
  const environment = workerEnvironment(t.database, { DELIVERY_SCHEDULE: '1s,1s,1h' });
  const workers = [await startChildWorker(environment), await startChildWorker(environment)];

  await t.events('seat.given', 60);
  await t.events('seat.ended', 45);
  await vi.waitFor(() => expect(free.receiver.received).toHaveLength(60), patient);
  const aloneFromMs = Date.now();
  expect(steady.receiver.received.length, 'of 60, when the other webhook has all').toBeLessThan(45);
  await t.events('client.started', 60);
  const changes: Change[] = [];
  for (const [posts, rate] of [
    [25, 10],
    [25, null],
    [20, 5],
  ] as const) {
    const before = steady.receiver.received.length;
    await vi.waitFor(() => expect(steady.receiver.received.length).toBeGreaterThan(before + posts), patient);
    changes.push(await t.setRate(steady, rate));
  }
  await t.events('client.started', 20);
  await t.areSettled();

  const posts = await t.posts(steady);
  expect(posts.length).toBeGreaterThanOrEqual(140);
  const [faster, unbounded, slower] = changes as [Change, Change, Change];
  const between = (from: number, to: number) =>
    posts.filter(({ admittedAtMs }) => admittedAtMs > from && admittedAtMs < to);
  assertBounded(between(0, faster.beganAtMs), 5);
  assertReached(between(aloneFromMs, faster.beganAtMs), 5);
  const second = between(faster.endedAtMs, unbounded.beganAtMs);
  assertBounded(second, 10);
  expect(findExcess(second, 'receivedAtMs', 5), 'posts above the former bound').toBeGreaterThan(3);
  const third = between(unbounded.endedAtMs, slower.beganAtMs);
  expect(findExcess(third, 'receivedAtMs', 10), 'posts above the former bound').toBeGreaterThan(3);
  const last = between(slower.endedAtMs, Number.POSITIVE_INFINITY);
  assertBounded(last.slice(10), 5); // up to ten slots were reserved while there was no bound
  assertReached(last.slice(10), 5);

  const retried = await t.posts(flaky);
  expect(retried.filter(({ number }) => number > 1).length).toBeGreaterThanOrEqual(15);
  assertBounded(retried, 5);

  // Of 185 deliveries of webhooks with a bound and 60 others.
  for (const worker of workers) expect(await countAttempts(worker), 'attempts of one worker').toBeGreaterThan(60);
});

it('a worker that dies with a reserved slot for each post stops its webhook no longer than they are reserved', {
  timeout,
}, async () => {
  const t = await arrange();
  const hook = await t.hook({ eventTypes: ['seat.given'], rate: 5 });
  const [host = '', port = ''] = inject('temporalAddress').split(':');
  const proxy = await startTcpProxy({ host, port: Number(port) });
  const dying = await startChildWorker(workerEnvironment(t.database, { TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` }));
  const other = await startChildWorker(workerEnvironment(t.database));
  other.process.kill('SIGSTOP'); // so that all claims are those of the first

  await t.events('seat.given', 60);
  await vi.waitFor(() => expect(hook.receiver.received.length).toBeGreaterThan(10), patient);
  proxy.pause(); // no run is started
  const reserved = 'select from slot where attempt_id is null';
  await vi.waitFor(async () => expect((await t.owner.pool.query(reserved)).rowCount).toBe(2), {
    ...patient,
    interval: 1,
  });
  dying.process.kill('SIGKILL');
  await dying.ended;
  const diedAtMs = Date.now();
  other.process.kill('SIGCONT');
  await t.areSettled();

  const posts = await t.posts(hook);
  assertBounded(posts, 5);
  const after = posts.filter(({ admittedAtMs }) => admittedAtMs > diedAtMs);
  expect(after.length).toBeGreaterThan(30);
  expect((after[0]?.admittedAtMs ?? Number.POSITIVE_INFINITY) - diedAtMs).toBeLessThan(2 * reservedMs);
  assertReached(after, 5);
});

async function countAttempts({ metricsUrl }: { metricsUrl: string }): Promise<number> {
  const page = await (await fetch(`${metricsUrl}/metrics`)).text();
  const counts = page.matchAll(/^org_api_delivery_attempt_duration_seconds_count(?:\{.*\})? (\d+)/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Expects that no time had more posts than the bound allows. */
function assertBounded(posts: readonly Post[], rate: number): void {
  expect(findExcess(posts, 'admittedAtMs', rate), 'admitted attempts above the bound').toBeLessThanOrEqual(0);
  // A post that took longer than the next ones arrives in their company.
  const delaysMs = posts.map(({ admittedAtMs, receivedAtMs }) => receivedAtMs - admittedAtMs);
  const lateMs = Math.max(...delaysMs) - Math.min(...delaysMs);
  expect(findExcess(posts, 'receivedAtMs', rate), 'received posts above the bound').toBeLessThanOrEqual(
    (rate * lateMs) / 1_000,
  );
}

/**
 * Expects that a receiver got at least four fifths of the bound, in half of all windows of two seconds: a machine that
 * stands still for a moment leaves some of them empty.
 */
function assertReached(posts: readonly Post[], rate: number): void {
  const atMs = posts.map(({ receivedAtMs }) => receivedAtMs).sort((one, other) => one - other);
  const counts = atMs
    .filter((from) => from + 2_000 <= (atMs.at(-1) ?? 0))
    .map((from) => atMs.filter((at) => at >= from && at < from + 2_000).length)
    .sort((one, other) => one - other);
  expect(counts[counts.length >> 1], 'posts in two seconds').toBeGreaterThanOrEqual(0.8 * 2 * rate);
}

/** Returns by how many posts the fullest of all windows is above the bound: a bucket, and `rate` a second. */
function findExcess(posts: readonly Post[], when: 'admittedAtMs' | 'receivedAtMs', rate: number): number {
  const atMs = posts.map((post) => post[when]).sort((one, other) => one - other);
  const bucket = Math.ceil(rate / 10) + 1;
  let most = Number.NEGATIVE_INFINITY;
  for (const [first, from] of atMs.entries())
    for (const [more, to] of atMs.slice(first).entries())
      most = Math.max(most, more + 1 - bucket - (rate * (to - from)) / 1_000);
  return Math.floor(most * 1_000) / 1_000; // PostgreSQL's times are whole microseconds
}

type Change = Awaited<ReturnType<Awaited<ReturnType<typeof arrange>>['setRate']>>;

/** One organization, whose webhooks have receivers of their own. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const change = (hook: MadeWebhook, postsPerSecond: number | null) =>
    changeWebhook(owner, { organizationId: orgId, webhookId: hook.id, by: 'orgctl', postsPerSecond }, testAllowList);
  return {
    database,
    owner,
    async hook({ eventTypes, rate }: { eventTypes: EventType[]; rate: number | null }) {
      const receiver = await startReceiver();
      const hook = { ...(await make.webhook({ orgId, url: receiver.url, eventTypes })), receiver };
      if (rate !== null) await change(hook, rate);
      return hook;
    },
    events: (type: EventType, count: number) =>
      owner.pool.query(`select record_event($1, $2, '{}', null) from generate_series(1, $3)`, [orgId, type, count]),
    /** Returns between which times it began to apply. */
    async setRate(hook: MadeWebhook, rate: number | null) {
      const beganAtMs = Date.now();
      await change(hook, rate);
      return { beganAtMs, endedAtMs: Date.now() };
    },
    areSettled: () =>
      vi.waitFor(async () => expect(await countDeliveries(owner.pool, `state <> 'delivered'`)).toBe(0), patient),
    /** Returns the posts of a webhook in the order of their admission. */
    async posts({ id, receiver }: MadeWebhook & { receiver: Awaited<ReturnType<typeof startReceiver>> }) {
      const { rows } = await owner.pool.query<{ key: string; number: number; admittedAtMs: number }>(
        `select event_id || '/' || number as key, number,
           extract(epoch from started_at)::float8 * 1000 as "admittedAtMs"
         from delivery_attempt where webhook_id = $1 order by started_at`,
        [id],
      );
      const atMs = new Map(
        receiver.received.map(({ headers, atMs }) => [
          `${headers['webhook-id']}/${headers['webhook-attempt']}`,
          performance.timeOrigin + atMs,
        ]),
      );
      expect(receiver.received).toHaveLength(atMs.size);
      return rows.flatMap(({ key, ...row }) => {
        const receivedAtMs = atMs.get(key);
        return receivedAtMs === undefined ? [] : [{ ...row, receivedAtMs }];
      });
    },
  };
}
