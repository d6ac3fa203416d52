import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Relay } from '#delivery/relay.ts';
import type { ClaimedDelivery } from '#delivery/sql/claim.ts';
import { repairDeliveriesSql } from '#delivery/sql/repair.ts';
import { reservedMs } from '#delivery/times.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';

const patient = { timeout: 20_000, interval: 20 };
/** Deliveries that are claimed: nothing here makes their attempts. */
const countHeld = 'select count(*)::integer as held from slot';

// Starting all its claims first would take longer than a stop may.
describe('a relay that stops', () => {
  it('finishes the starts in progress, and returns what waits in its queue', async () => {
    const { openRelay, rows } = await arrange();
    await rows('update receiver set concurrency = 1');
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(8), patient); // degraded ones wait for each other

    let stopped = false;
    const stopping = leaving.relay.stop().then(() => {
      stopped = true;
    });
    await vi.waitFor(async () => expect(await rows(countHeld)).toEqual([{ held: 1 }]), patient);
    expect(stopped).toBe(false);
    leaving.finishStarts();
    await stopping;
    expect(leaving.begun).toHaveLength(1);
    expect(await rows(countHeld)).toEqual([{ held: 1 }]);

    await rows('update receiver set concurrency = 10');
    const staying = await openRelay({ isHeld: false });
    await vi.waitFor(() => expect(staying.begun).toHaveLength(29), patient);
    const events = [...leaving.begun, ...staying.begun].map(({ webhookId, eventId }) => `${webhookId}/${eventId}`);
    expect(new Set(events).size).toBe(30);
    // They were numbered by the first claim, and keep their numbers.
    expect(
      await rows(
        'select sequence::integer as sequence, count(*)::integer as count from delivery group by 1 order by 1',
      ),
    ).toEqual([{ sequence: 1, count: 30 }]);
  });

  it('is followed by another one, which claims the returned deliveries at once', async () => {
    const { openRelay, rows } = await arrange();
    await rows('update receiver set concurrency = 1 where webhook_id in (select webhook_id from receiver limit 15)');
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBeGreaterThan(15), patient); // some of each kind
    await rows('update receiver set concurrency = 10');
    const staying = await openRelay({ isHeld: false });
    leaving.finishStarts();
    await leaving.relay.stop();
    await vi.waitFor(() => expect(leaving.begun.length + staying.begun.length).toBe(30), patient);
  });

  it('stops also while the database is down, and its claims stay until they expire', async () => {
    const { openRelay, rows } = await arrange();
    await rows('update receiver set concurrency = 1');
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(8), patient);
    await leaving.database.pool.end();
    const stopping = leaving.relay.stop();
    await vi.waitFor(() => expect(leaving.errors.length).toBeGreaterThan(0), patient);
    leaving.finishStarts();
    await stopping;
    expect(await rows(countHeld)).toEqual([{ held: 8 }]);
  });
});

describe('a relay whose starts fail', () => {
  it('discards only the failed one, and starts it again once its reservation has ended', async () => {
    const { openRelay, rows } = await arrange();
    let rejected: string | null = null;
    const { begun, errors } = await openRelay({
      startRun: async (delivery) => {
        rejected ??= formatId(delivery);
        if (formatId(delivery) === rejected && begunTimes(formatId(delivery)) < 2) throw new Error('rejected');
        return false;
      },
    });
    const begunTimes = (id: string) => begun.filter((delivery) => formatId(delivery) === id).length;
    await vi.waitFor(() => expect(begun).toHaveLength(30), patient);
    const [webhookId = '', eventId = ''] = (rejected ?? '').split('/');
    await rows(`update slot set until = now() where webhook_id = '${webhookId}' and event_id = '${eventId}'`);
    const repaired = await rows(repairDeliveriesSql, [5, 60, [1_000]]);
    expect(repaired).toMatchObject([{ webhookId, eventId, run: 1, kind: 'not_started', state: 'queued' }]);

    await vi.waitFor(() => expect(begun).toHaveLength(31), patient);
    expect(begun.at(-1)).toMatchObject({ webhookId, eventId, run: 2 });
    expect(new Set(begun.map(formatId)).size).toBe(30);
    expect(errors).toHaveLength(1);
  });

  it('tries again although others of its starts get no reply', async () => {
    const { openRelay } = await arrange();
    const replies = Promise.withResolvers<boolean>();
    let starts = 0;
    const { begun } = await openRelay({
      isUnavailable: () => true,
      startRun: (): Promise<boolean> => {
        starts += 1;
        if (starts === 1) return Promise.reject(new Error('unavailable'));
        return starts <= 30 ? replies.promise : Promise.resolve(false);
      },
    });
    onTestFinished(() => replies.resolve(false));
    await vi.waitFor(() => expect(begun).toHaveLength(31), patient);
  });

  it('starts again although only degraded webhooks have deliveries', async () => {
    const { openRelay, rows } = await arrange();
    await rows('update receiver set concurrency = 1');
    let isBack = false;
    const { begun } = await openRelay({
      isUnavailable: () => true,
      startRun: async () => {
        if (!isBack) throw new Error('unavailable');
        return false;
      },
    });
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(3), patient);
    isBack = true;
    // Five of each organization: no attempt ends here.
    await vi.waitFor(async () => expect(await rows(countHeld)).toEqual([{ held: 10 }]), patient);
  });

  it('returns its deliveries while Temporal is down, tries one of them, and then starts all', async () => {
    const { openRelay, rows } = await arrange();
    let isBack = false;
    const unavailable = new Error('unavailable');
    const { begun, errors } = await openRelay({
      isUnavailable: (cause) => cause === unavailable,
      startRun: async () => {
        if (!isBack) throw unavailable;
        return false;
      },
    });
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(18), patient);
    expect(errors).toHaveLength(1); // reported once
    await vi.waitFor(async () => expect(await rows(countHeld)).toEqual([{ held: 0 }]), patient);
    const requested = begun.length;
    isBack = true;
    await vi.waitFor(async () => expect(await rows(countHeld)).toEqual([{ held: 30 }]), patient);
    await vi.waitFor(() => expect(new Set(begun.slice(requested).map(formatId)).size).toBe(30), patient);
  });
});

describe('a relay that hears of the end of an attempt', () => {
  it('does not claim while nothing waits to be claimed', async () => {
    const { openRelay } = await arrange();
    const { relay, begun, requested } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(30), patient);
    const claims = requested.claimDeliveries;
    for (let ended = 0; ended < 20; ended += 1) {
      const looks = requested.listQueued ?? 0;
      relay.wake();
      await vi.waitFor(() => expect(requested.listQueued).toBeGreaterThan(looks), patient);
    }
    expect(requested.claimDeliveries).toBe(claims);
  });

  it('claims at once when a webhook waited for a slot, and not for other organizations', async () => {
    const { openRelay, make, rows } = await arrange();
    const professional = await make.member();
    await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    for (let events = 0; events < 11; events += 1) await make.grant({ professional });
    const { relay, begun, requested } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(40), patient);
    const others = begun.filter(({ organizationId }) => organizationId !== professional.orgId);
    await vi.waitFor(async () => {
      const claims = requested.claimDeliveries;
      for (const other of others.splice(0, 5)) {
        const looks = requested.listQueued ?? 0;
        relay.attemptEnded(other);
        await vi.waitFor(() => expect(requested.listQueued).toBeGreaterThan(looks), patient);
      }
      expect(requested.claimDeliveries).toBe(claims);
    }, patient);
    await rows(`update delivery set state = 'delivered', due_at = null, settled_at = now()
      where organization_id = '${professional.orgId}' and state = 'running'`);
    await rows(`delete from slot where organization_id = '${professional.orgId}'`);
    relay.attemptEnded(begun.find(({ organizationId }) => organizationId === professional.orgId) as ClaimedDelivery);
    await vi.waitFor(() => expect(begun).toHaveLength(41), patient);
  });
});

describe('a relay with more deliveries than it can start', () => {
  it('claims what can begin here soon, and leaves the rest to other relays', async () => {
    const { openRelay, addWebhooks } = await arrange();
    await addWebhooks(60);
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0); // what was claimed two seconds ago no longer counts
    onTestFinished(() => clock.mockRestore());
    const first = await openRelay({ hasFirstTask: true });
    await vi.waitFor(() => expect(first.claimed).toBe(32), patient);
    const second = await openRelay({ hasFirstTask: true });
    await vi.waitFor(() => expect(second.claimed).toBe(32), patient);
    for (const delivery of first.begun.slice(0, 15)) first.relay.attemptStarted(delivery);
    await sleep(100); // a poll takes a few milliseconds
    expect(first.claimed).toBe(32);
    for (const delivery of first.begun) first.relay.attemptStarted(delivery);
    await vi.waitFor(() => expect(first.claimed).toBe(90 - 32), patient);
    expect(second.claimed).toBe(32);
  });

  it('starts all that waits, however its claims and starts overlap', async () => {
    const { openRelay, addWebhooks } = await arrange();
    await addWebhooks(120);
    const { begun } = await openRelay({ claimEveryMs: 3_600_000, startRun: () => sleep(20, false) });
    await vi.waitFor(() => expect(begun).toHaveLength(150), patient);
  });

  it.each([200, 20])('begins all that waits with %i slots, however its claims are cut', async (workerSlots) => {
    const { openRelay, addWebhooks } = await arrange();
    await addWebhooks(120);
    const { relay, begun } = await openRelay({
      claimEveryMs: 3_600_000,
      workerSlots,
      startRun: async (delivery) => {
        void sleep(20).then(() => relay.attemptStarted(delivery));
        void sleep(40).then(() => relay.attemptEnded(delivery));
        return true;
      },
    });
    await vi.waitFor(() => expect(begun).toHaveLength(150), patient);
  });

  // Otherwise first tasks would wait in this process while their claims expire, and be started again.
  it('claims no more than the attempts that its process can make at once', async () => {
    const { openRelay, rows } = await arrange();
    const { relay, begun, seen } = await openRelay({ hasFirstTask: true, workerSlots: 20 });
    await vi.waitFor(() => expect(begun).toHaveLength(20), patient);
    for (const delivery of begun) relay.attemptStarted(delivery);
    relay.attemptEnded(begun[1] as ClaimedDelivery);
    await vi.waitFor(() => expect(begun).toHaveLength(21), patient);
    for (const delivery of begun.slice(2, 11)) relay.attemptEnded(delivery);
    await vi.waitFor(() => expect(begun).toHaveLength(30), patient);
    expect(seen.most).toBe(20);
    expect(await rows('select max(run) as runs from delivery')).toEqual([{ runs: 1 }]);
  });

  it('starts degraded ones one after another, at most twenty a second, and healthy ones meanwhile', async () => {
    const { openRelay, addWebhooks, rows } = await arrange();
    await addWebhooks(1);
    await rows(`update receiver set concurrency = 1 where organization_id in (
      select organization_id from delivery group by 1 having count(*) > 1)`);
    const { begun } = await openRelay({ isHeld: false });
    await vi.waitFor(() => expect(begun.filter(({ isDegraded }) => isDegraded)).toHaveLength(10), patient);
    const degraded = begun.filter((delivery) => delivery.isDegraded);
    expect(
      Math.min(...degraded.slice(1).map(({ atMs }, index) => atMs - (degraded[index]?.atMs ?? 0))),
    ).toBeGreaterThan(45);
    const wideAt = begun.findIndex((delivery) => !delivery.isDegraded);
    expect(wideAt).toBeLessThan(9);
  });

  // The delivery may have a newer run, which a late start would end.
  it('starts no claim that is older than its reservation', async () => {
    const { openRelay, rows } = await arrange();
    await rows('update receiver set concurrency = 1');
    await rows(`update delivery d set failures = 1, due_at = now() + interval '1 hour' from (
        select webhook_id, row_number() over (partition by organization_id) as number from delivery) n
      where n.webhook_id = d.webhook_id and n.number > 4`);
    const { begun, seen, finishStarts } = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(seen.claimed).toBe(8), patient);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + reservedMs + 1 });
    onTestFinished(() => void vi.useRealTimers());
    finishStarts();
    await sleep(1_000); // twice as long as their pauses take
    expect(begun).toHaveLength(1);
  });
});

describe('a relay with more waiting webhooks than one claim covers', () => {
  it('claims for each of them, and at once for a new one while all others have no free slot', async () => {
    const { openRelay, make, rows } = await arrange();
    await rows(insertWaitingWebhooksSql);
    await rows(`update receiver set concurrency = 5`);
    const { begun } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000, workerSlots: 10_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(3_030), patient);
    expect(new Set(begun.map(({ webhookId }) => webhookId)).size).toBe(630);

    const professional = await make.member();
    const { id } = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    await make.grant({ professional });
    await vi.waitFor(() => expect(begun.map(({ webhookId }) => webhookId)).toContain(id), patient);
    expect(begun).toHaveLength(3_031);
  });
});

/**
 * Three hundred organizations with two webhooks each, five slots and six deliveries for each.
 */
const insertWaitingWebhooksSql = `
  with organizations as (
    insert into organization (id, name, slug, kind, status)
    select gen_random_uuid(), 'Many', 'many-' || n, 'law_firm', 'active' from generate_series(1, 300) n returning id
  ), events as (
    insert into event (organization_id, id, type, created_at, body, delivery_count)
    select id, new_id(), 'seat.given', now(), '{}', 20 from organizations, generate_series(1, 6)
    returning organization_id, id
  ), webhooks as (
    insert into webhook (organization_id, id, url, event_types, number)
    select id, gen_random_uuid(), 'http://host' || n || ':9/', '{client.started}', n
    from organizations, generate_series(1, 2) n
    returning organization_id, id
  )
  insert into delivery (organization_id, webhook_id, event_id, created_at, due_at)
  select w.organization_id, w.id, e.id, now(), now()
  from webhooks w join events e on e.organization_id = w.organization_id`;

const formatId = ({ webhookId, eventId }: ClaimedDelivery) => `${webhookId}/${eventId}`;

interface OpenOptions {
  /** Starts do not end before `finishStarts`. */
  isHeld?: boolean;
  /** First tasks come with the replies to starts. */
  hasFirstTask?: boolean;
  workerSlots?: number;
  startRun?: (delivery: ClaimedDelivery) => Promise<boolean>;
  isUnavailable?: (cause: unknown) => boolean;
  claimEveryMs?: number;
}

/** Counts calls of the named statements. */
function countStatements(pool: Pool): Record<string, number> {
  const requested: Record<string, number> = {};
  const query = pool.query.bind(pool) as (...values: unknown[]) => unknown;
  Object.assign(pool, {
    query: (statement: { name?: string }, ...values: unknown[]) => {
      const { name } = statement;
      if (name !== undefined) requested[name] = (requested[name] ?? 0) + 1;
      return query(statement, ...values);
    },
  });
  return requested;
}

/** Thirty webhooks, fifteen of each of two organizations, each with one due delivery. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  for (const professional of [await make.member(), await make.member()]) {
    for (let count = 0; count < 15; count += 1)
      await make.webhook({ orgId: professional.orgId, url: `http://host${count}:9/` });
    await make.grant({ professional });
  }

  async function openRelay(options: OpenOptions) {
    const {
      isHeld = false,
      hasFirstTask = false,
      workerSlots = 200,
      isUnavailable = () => false,
      claimEveryMs = 500,
    } = options;
    const opened = await openDatabase({
      server: parsePostgresUrl(database.urls.worker),
      applicationName: 'test',
      poolMax: 3,
    });
    onTestFinished(() => opened.close());
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!isHeld) resolve();
    const { startRun = () => promise.then(() => hasFirstTask) } = options;
    const begun: (ClaimedDelivery & { atMs: number })[] = [];
    const errors: unknown[] = [];
    const seen = { claimed: 0, most: 0 };
    const requested = countStatements(opened.pool);
    const relay = new Relay({
      pool: opened.pool,
      workerSlots,
      claimEveryMs,
      isUnavailable,
      startRun: (delivery) => {
        begun.push({ ...delivery, atMs: performance.now() });
        return startRun(delivery);
      },
      onClaimed: (deliveries) => {
        seen.claimed += deliveries;
        seen.most = Math.max(seen.most, deliveries);
      },
      onError: (cause) => void errors.push(cause),
    });
    relay.start();
    onTestFinished(() => relay.stop());
    return Object.assign(seen, { seen, relay, begun, requested, errors, database: opened, finishStarts: resolve });
  }
  const rows = async (query: string, values: unknown[] = []) => (await owner.pool.query(query, values)).rows;
  /** Webhooks of organizations of their own, fifteen each at most, with one due delivery each. */
  async function addWebhooks(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 15) {
      const professional = await make.member();
      for (let webhooks = 0; webhooks < Math.min(left, 15); webhooks += 1)
        await make.webhook({ orgId: professional.orgId, url: `http://host${webhooks}:9/` });
      await make.grant({ professional });
    }
  }
  return { openRelay, make, addWebhooks, rows };
}
