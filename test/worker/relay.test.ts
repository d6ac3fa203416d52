import type { Pool } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';
import type { ClaimedDelivery } from '../../apps/worker/relay/claimed-delivery.ts';
import { createRelay } from '../../apps/worker/relay/relay.ts';

const patient = { timeout: 20_000, interval: 20 };
/** Longer than the test, so that no lease expires in it. */
const leaseSeconds = 3_600;

// Regression: a relay that was stopping first started all its claims, and was killed meanwhile.
describe('a relay that stops', () => {
  it('finishes the start in progress, and releases the rest to the next claim', async () => {
    const { openRelay, rows } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(30), patient);
    await vi.waitFor(() => expect(leaving.begun).toHaveLength(16), patient); // maximum number of concurrent starts

    let stopped = false;
    const stopping = leaving.relay.stop().then(() => {
      stopped = true;
    });
    await vi.waitFor(
      async () =>
        expect(await rows('select count(*)::integer as held from delivery where claimed')).toEqual([{ held: 16 }]),
      patient,
    );
    expect(stopped).toBe(false);
    leaving.release();
    await stopping;
    expect(leaving.begun).toHaveLength(16);
    expect(await rows('select count(*)::integer as started from delivery where started')).toEqual([{ started: 16 }]);

    const staying = await openRelay({ isHeld: false });
    await vi.waitFor(() => expect(staying.begun).toHaveLength(14), patient);
    const events = [...leaving.begun, ...staying.begun].map(({ webhookId, eventId }) => `${webhookId}/${eventId}`);
    expect(new Set(events).size).toBe(30);
    // They were numbered by the first claim, and keep their numbers.
    expect(
      await rows(
        'select sequence::integer as sequence, count(*)::integer as count from delivery group by 1 order by 1',
      ),
    ).toEqual([{ sequence: 1, count: 30 }]);
  });

  it('is followed by another one, which claims the released deliveries at once', async () => {
    const { openRelay } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.claimed).toBe(30), patient);
    const staying = await openRelay({ isHeld: false });
    leaving.release();
    await leaving.relay.stop();
    await vi.waitFor(() => expect(leaving.begun.length + staying.begun.length).toBe(30), patient);
  });

  it('stops also while the database is down, and its deliveries are claimed after their lease', async () => {
    const { openRelay, rows } = await arrange();
    const leaving = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(leaving.begun).toHaveLength(16), patient);
    await leaving.database.pool.end();
    leaving.release();
    await leaving.relay.stop();
    expect(leaving.errors.length).toBeGreaterThan(0);
    expect(await rows('select count(*)::integer as held from delivery where claimed')).toEqual([{ held: 30 }]);
  });
});

describe('a relay whose starts fail', () => {
  it('discards only the failed one, and starts it again once its lease has expired', async () => {
    const { openRelay } = await arrange();
    let refused: string | null = null;
    const { begun, errors } = await openRelay({
      leaseSeconds: 1,
      startWorkflow: async (delivery) => {
        const id = idOf(delivery);
        refused ??= id;
        if (id === refused && begunTimes(id) < 2) throw new Error('refused');
      },
    });
    const begunTimes = (id: string) => begun.filter((delivery) => idOf(delivery) === id).length;

    await vi.waitFor(() => expect(begun).toHaveLength(31), patient);
    expect(begunTimes(refused ?? '')).toBe(2);
    expect(new Set(begun.map(idOf)).size).toBe(30);
    expect(errors).toHaveLength(1);
  });

  it('releases its deliveries while Temporal is down, tries one of them, and then starts all', async () => {
    const { openRelay, rows } = await arrange();
    let isBack = false;
    const away = new Error('away');
    const { begun, errors } = await openRelay({
      isAway: (cause) => cause === away,
      startWorkflow: async () => {
        if (!isBack) throw away;
      },
    });
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(18), patient);
    expect(errors).toHaveLength(1); // reported once
    const held = 'select count(*)::integer as held from delivery where claimed';
    await vi.waitFor(async () => expect(await rows(held)).toEqual([{ held: 0 }]), patient);
    const asked = begun.length;
    isBack = true;
    await vi.waitFor(
      async () => expect(await rows('select count(*)::integer as n from delivery where started')).toEqual([{ n: 30 }]),
      patient,
    );
    expect(new Set(begun.slice(asked).map(idOf)).size).toBe(30);
  });
});

describe('a relay that hears of the end of an attempt', () => {
  it('does not claim while nothing waits to be claimed', async () => {
    const { openRelay, rows } = await arrange();
    const { relay, begun, asked } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(30), patient);
    await vi.waitFor(
      async () => expect(await rows('select count(*)::integer as n from delivery where started')).toEqual([{ n: 30 }]),
      patient,
    );
    const claims = asked.claimDeliveries;
    for (let ended = 0; ended < 20; ended += 1) {
      const looks = asked.listUnclaimed ?? 0;
      relay.wake();
      await vi.waitFor(() => expect(asked.listUnclaimed).toBeGreaterThan(looks), patient);
    }
    expect(asked.claimDeliveries).toBe(claims);
  });

  it('claims at once when a webhook waited for a slot', async () => {
    const { openRelay, make, rows } = await arrange();
    const professional = await make.member();
    await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    for (let events = 0; events < 11; events += 1) await make.grant({ professional });
    const { relay, begun } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(40), patient);
    await rows(`update delivery set state = 'delivered', next_attempt_at = null, settled_at = now(), claimed = false
      where organization_id = '${professional.orgId}' and claimed`);
    relay.wake();
    await vi.waitFor(() => expect(begun).toHaveLength(41), patient);
  });
});

describe('a relay with more deliveries than it can start within its leases', () => {
  it('claims what its queues hold, and leaves the rest to other relays', async () => {
    const { openRelay, make } = await arrange();
    for (let count = 0; count < 4; count += 1) {
      const professional = await make.member();
      for (let webhooks = 0; webhooks < 15; webhooks += 1)
        await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
      await make.grant({ professional });
    }
    const first = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(first.claimed).toBe(64), patient);
    const second = await openRelay({ isHeld: true });
    await vi.waitFor(() => expect(second.claimed).toBe(90 - 64), patient);
    expect(first.claimed).toBe(64);
    for (const { release } of [first, second]) release();
  });
});

describe('a relay with more waiting webhooks than one claim covers', () => {
  it('claims for each of them, and at once for a new one while all others have no free slot', async () => {
    const { openRelay, make, rows } = await arrange();
    await rows(insertWaitingWebhooksSql);
    const { begun } = await openRelay({ isHeld: false, claimEveryMs: 3_600_000 });
    await vi.waitFor(() => expect(begun).toHaveLength(630), patient);
    expect(new Set(begun.map(({ webhookId }) => webhookId)).size).toBe(630);

    const professional = await make.member();
    const { id } = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    await make.grant({ professional });
    await vi.waitFor(() => expect(begun.map(({ webhookId }) => webhookId)).toContain(id), patient);
    expect(begun).toHaveLength(631);
  });
});

/**
 * Thirty organizations with twenty webhooks each: one slot and two deliveries for every webhook.
 */
const insertWaitingWebhooksSql = `
  with organizations as (
    insert into organization (id, name, slug, kind, status)
    select gen_random_uuid(), 'Many', 'many-' || n, 'law_firm', 'active' from generate_series(1, 30) n returning id
  ), events as (
    insert into event (organization_id, id, type, created_at, body, delivery_count)
    select id, new_id(), 'seat.given', now(), '{}', 20 from organizations, generate_series(1, 2)
    returning organization_id, id
  ), webhooks as (
    insert into webhook (organization_id, id, url, event_types, slot, ramp)
    select id, gen_random_uuid(), 'http://127.0.0.1:9/', '{client.started}', n, 1
    from organizations, generate_series(1, 20) n
    returning organization_id, id
  )
  insert into delivery (organization_id, webhook_id, event_id, state, created_at, next_attempt_at)
  select w.organization_id, w.id, e.id, 'waiting', now(), now()
  from webhooks w join events e on e.organization_id = w.organization_id`;

const idOf = ({ webhookId, eventId }: ClaimedDelivery) => `${webhookId}/${eventId}`;

interface OpenOptions {
  /** Starts do not end before `release`. */
  isHeld?: boolean;
  leaseSeconds?: number;
  startWorkflow?: (delivery: ClaimedDelivery) => Promise<void>;
  isAway?: (cause: unknown) => boolean;
  claimEveryMs?: number;
}

/** Counts calls of the named statements. */
function countStatements(pool: Pool): Record<string, number> {
  const asked: Record<string, number> = {};
  const query = pool.query.bind(pool) as (...values: unknown[]) => unknown;
  Object.assign(pool, {
    query: (statement: { name?: string }, ...values: unknown[]) => {
      const { name } = statement;
      if (name !== undefined) asked[name] = (asked[name] ?? 0) + 1;
      return query(statement, ...values);
    },
  });
  return asked;
}

/** Thirty webhooks, fifteen of each of two organizations, each with one due delivery. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  for (const professional of [await make.member(), await make.member()]) {
    for (let count = 0; count < 15; count += 1)
      await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
    await make.grant({ professional });
  }

  async function openRelay(options: OpenOptions) {
    const {
      isHeld = false,
      leaseSeconds: lease = leaseSeconds,
      startWorkflow,
      isAway = () => false,
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
    const begun: ClaimedDelivery[] = [];
    const errors: unknown[] = [];
    const seen = { claimed: 0 };
    const asked = countStatements(opened.pool);
    const relay = createRelay({
      pool: opened.pool,
      leaseSeconds: lease,
      claimEveryMs,
      isAway,
      startWorkflow: (delivery) => {
        begun.push(delivery);
        return startWorkflow === undefined ? promise : startWorkflow(delivery);
      },
      onClaimed: (deliveries) => {
        seen.claimed += deliveries;
      },
      onError: (cause) => void errors.push(cause),
    });
    relay.start();
    onTestFinished(() => relay.stop());
    return Object.assign(seen, { relay, begun, asked, errors, database: opened, release: resolve });
  }
  return { openRelay, make, rows: async (query: string) => (await owner.pool.query(query)).rows };
}
