/** When reads stopped showing access, and what the log keeps of its end. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { beginDueGrantsSql, endDueGrantsSql } from '#domain/clients/due-grants.ts';
import { endGrant } from '#domain/clients/end-access.ts';
import { rollUpLedger } from '#domain/webhooks/ledger.ts';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { setupPlatform } from '#test/platform.ts';
import { openAs } from '#test/webhook-rows.ts';

const patient = { timeout: 60_000, interval: 5 };
const hourMs = 3_600_000;
const ahead = (ms: number) => new Date(Date.now() + ms);

/** An organization with access that is active, the worker's login, and what reads show. */
async function setupEnds() {
  const t = await setupPlatform();
  const { organization, member, family } = await t.create();
  const worker = await openAs(t.database.urls.worker, 3);
  const reader = new pg.Client({ connectionString: t.database.urls.api });
  await reader.connect();
  onTestFinished(() => reader.end());
  const own = async <Row>(text: string, values: unknown[]): Promise<Row[]> =>
    (await t.owner.pool.query(text, values)).rows as Row[];
  return {
    ...t,
    organization,
    member,
    worker,
    own,
    async start(values: Record<string, unknown> = {}): Promise<string> {
      const id = randomUUID();
      const start = { organization, id, kind: 'attorney', professional: member, family, ...values };
      expect(await t.call('start_grant', start)).toBe('created');
      return id;
    },
    /** What one read shows now, and a time of the database after it saw the rows, with microseconds. */
    async read(id: string): Promise<{ status: string; at: string }> {
      const { rows } = await reader.query(
        `select status, to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
         from api.client_grant where id = $1`,
        [id],
      );
      return rows[0];
    },
    async stop(id: string): Promise<{ at: string; isPlanned: boolean; endsAt: string } | null> {
      const [row] = await own<{ at: string; isPlanned: boolean; endsAt: string }>(
        `select to_char(e.stopped_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at,
           e.entry_id is null as "isPlanned",
           to_char(g.ends_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as "endsAt"
         from grant_end e join client_grant g on g.id = e.grant_id where e.grant_id = $1`,
        [id],
      );
      return row ?? null;
    },
    /** The entries that the database wrote, oldest first. */
    entries: () =>
      own<{ action: string; person: string | null; detail: Record<string, unknown> }>(
        `select action, person_id as person, detail from audit_entry
         where action in ('grant.ended', 'grant.notified') order by at, id`,
        [],
      ),
    async maintain(): Promise<void> {
      await worker.pool.query(beginDueGrantsSql);
      await worker.pool.query(endDueGrantsSql);
    },
  };
}

describe('when reads stopped', () => {
  const ends = {
    'an end now': `status = 'ended', end_reason = 'ended', ends_at = clock_timestamp()`,
    'an end that an import dates back': `status = 'ended', end_reason = 'moved', ends_at = now() - interval '23 hours'`,
    'an end that has passed when it is planned': `ends_at = clock_timestamp()`,
  };
  for (const [name, change] of Object.entries(ends))
    it(`is after each read before the commit and before each that shows it: ${name}`, async () => {
      const t = await setupEnds();
      const id = await t.start({ since: ahead(-48 * hourMs) });
      const writer = await t.owner.pool.connect();
      await writer.query('begin');
      await writer.query(`update client_grant set ${change} where id = $1`, [id]);
      const reads = [await t.read(id), await t.read(id)];
      const committed = writer.query('commit');
      const poll = async () => {
        const shown = await t.read(id);
        reads.push(shown);
        expect(shown.status).toBe('ended');
      };
      await vi.waitFor(poll, { ...patient, interval: 0 });
      await committed;
      writer.release();
      expect((await t.read(id)).status).toBe('ended');
      const stopped = (await t.stop(id))?.at ?? '';
      expect([reads[1]?.status, (reads[1]?.at ?? '') < stopped]).toEqual(['active', true]);
      expect(stopped < (reads.find(({ status }) => status === 'ended')?.at ?? '')).toBe(true);
      // The worker writes what the clock has ended, and reads stopped no second time.
      await t.maintain();
      expect(await t.stop(id)).toMatchObject({ at: stopped, isPlanned: false });
      expect(await t.entries()).toMatchObject([
        { action: 'grant.ended', person: null, detail: { grantId: id, stoppedAt: `${stopped.slice(0, 23)}Z` } },
      ]);
    });

  it('is the planned end itself, which may be moved and removed until it comes', async () => {
    const t = await setupEnds();
    const id = await t.start({ ends_at: ahead(hourMs) });
    const plan = (ends_at: Date | null) => t.call('plan_end', { organization: t.organization, id, ends_at });
    const planned = await t.stop(id);
    expect(planned).toMatchObject({ at: planned?.endsAt, isPlanned: true });
    expect(await plan(null)).toBe('changed');
    expect(await t.stop(id)).toBeNull();
    expect(await plan(ahead(2 * hourMs))).toBe('changed');
    expect(await plan(ahead(200))).toBe('changed');
    await vi.waitFor(async () => expect((await t.read(id)).status).toBe('ended'), patient);
    const stopped = await t.stop(id);
    expect(stopped).toMatchObject({ at: stopped?.endsAt, isPlanned: true });
    await t.maintain();
    expect(await t.stop(id)).toMatchObject({ at: stopped?.at, isPlanned: false });
    expect(await t.entries()).toMatchObject([{ action: 'grant.ended', detail: { grantId: id, reason: 'ended' } }]);
  });

  it('is said of no access that was withdrawn or that arrives ended, and of access whose begin was due', async () => {
    const t = await setupEnds();
    const withdrawn = await t.start({ since: ahead(hourMs), ends_at: ahead(2 * hourMs) });
    expect(await t.stop(withdrawn)).toMatchObject({ isPlanned: true });
    expect(await t.call('end_grant', { organization: t.organization, id: withdrawn })).toBe('changed');
    const arrived = await t.start({ since: ahead(-2 * hourMs), ends_at: ahead(-hourMs) });
    expect([await t.stop(withdrawn), await t.stop(arrived), await t.entries()]).toEqual([null, null, []]);

    const late = await t.start({ since: ahead(hourMs), ends_at: ahead(2 * hourMs) });
    await t.own(`update client_grant set since = now() - interval '2 s', ends_at = now() where id = $1`, [late]);
    const stopped = await t.stop(late);
    await t.maintain();
    expect(await t.stop(late)).toMatchObject({ at: stopped?.at, isPlanned: false });
    expect(await t.entries()).toMatchObject([{ detail: { grantId: late } }]);
  });

  it('has one entry, whatever else the transaction changes of the access', async () => {
    const t = await setupEnds();
    const id = await t.start({ ends_at: ahead(hourMs) });
    const writer = await t.owner.pool.connect();
    for (const statement of [
      'begin',
      `update client_grant set ends_at = now() + interval '2 hours'`,
      `update client_grant set ends_at = now() + interval '3 hours'`,
      `update client_grant set status = 'ended', end_reason = 'ended', ends_at = clock_timestamp()`,
      `update client_grant set ends_at = ends_at - interval '1 minute', kind = 'neutral', since = since - interval '1 h'`,
      'commit',
    ])
      await writer.query(statement);
    writer.release();
    const stopped = await t.stop(id);
    expect([stopped?.isPlanned, (stopped?.at ?? '') > (stopped?.endsAt ?? '')]).toEqual([false, true]);
    expect(await t.entries()).toHaveLength(1);
  });

  it('has an entry that names the event, also of an end by a member; by an import without events, it names none', async () => {
    const t = await setupEnds();
    await t.make.webhook({ orgId: t.organization });
    const [mine, imported] = [await t.start(), await t.start()];
    await endGrant(t.owner, { organizationId: t.organization, grantId: mine, by: 'orgctl' });
    await t.own('grant org_api_backfill to current_user', []);
    const backfill = await t.owner.pool.connect();
    await backfill.query('begin');
    await backfill.query('set local role org_api_backfill');
    const end = `update client_grant set status = 'ended', end_reason = 'ended', ends_at = now() where id = $1`;
    await backfill.query(end, [imported]);
    await backfill.query('commit');
    backfill.release();
    const [event] = await t.own<{ id: string }>(`select id from event where type = 'client.ended'`, []);
    const stoppedAt = expect.any(String);
    expect((await t.entries()).map(({ detail }) => detail)).toEqual([
      { grantId: mine, reason: 'ended', stoppedAt, eventId: event?.id, deliveries: 1 },
      { grantId: imported, reason: 'ended', stoppedAt },
    ]);
  });
});

/** Access that has ended, with two webhooks, and the roll-up of what was settled. */
async function setupNotified() {
  const t = await setupEnds();
  const id = await t.start();
  const eventTypes = ['client.ended'] as const;
  const hooks = [];
  for (const url of ['https://a.example.com/', 'https://b.example.com/'])
    hooks.push(await t.make.webhook({ orgId: t.organization, url, eventTypes }));
  const [first, second] = hooks.sort((a, b) => a.id.localeCompare(b.id)) as [(typeof hooks)[0], (typeof hooks)[0]];
  expect(await t.call('end_grant', { organization: t.organization, id })).toBe('changed');
  const [event] = await t.own<{ id: string }>(`select id from event where type = 'client.ended'`, []);
  const eventId = event?.id ?? '';
  return {
    ...t,
    id,
    eventId,
    first,
    second,
    async settle(webhook: typeof first, state: 'delivered' | 'exhausted', ...statuses: (number | null)[]) {
      for (const status of statuses)
        await t.make.attempt({
          webhook,
          eventId,
          status,
          endsSchedule: state === 'exhausted',
          timings: { total: 250 },
          startedAt: new Date('2026-11-01T12:00:00Z'),
          ...(status === null ? { cause: 'lost' } : {}),
        });
      await t.own(
        `update delivery set state = $2, run = 1, due_at = null, settled_at = clock_timestamp() where webhook_id = $1`,
        [webhook.id, state],
      );
    },
    rollUp: () => rollUpLedger(t.worker, { settledForSeconds: 0 }),
    async notified() {
      return (await t.entries()).filter(({ action }) => action === 'grant.notified').map(({ detail }) => detail);
    },
  };
}

describe('the entry of what receivers answered', () => {
  const acknowledgedAt = '2026-11-01T12:00:00.250Z';

  it('is written once every delivery of the end is settled and proven, and again when a redelivery changes it', async () => {
    const t = await setupNotified();
    const { id: grantId, eventId, first, second } = t;
    await t.settle(first, 'delivered', null, 200);
    await t.rollUp();
    expect(await t.notified()).toEqual([]);
    await t.settle(second, 'exhausted', 500);
    await t.rollUp();
    await t.rollUp();
    const accepted = { webhookId: first.id, state: 'delivered', acknowledgedAt, lost: 1 };
    const failed = { grantId, eventId, receivers: [accepted, { webhookId: second.id, state: 'exhausted' }] };
    expect(await t.notified()).toEqual([failed]);

    // A redelivery of the accepted one changes nothing that the entry says.
    await t.own(`update delivery set state = 'queued', due_at = now(), settled_at = null where webhook_id = $1`, [
      first.id,
    ]);
    await t.settle(first, 'delivered');
    await t.rollUp();
    expect(await t.notified()).toEqual([failed]);
    await t.own(`update delivery set state = 'queued', due_at = now(), settled_at = null where webhook_id = $1`, [
      second.id,
    ]);
    await t.rollUp();
    await t.settle(second, 'delivered', 204);
    await t.rollUp();
    const repaired = { webhookId: second.id, state: 'delivered', acknowledgedAt };
    expect(await t.notified()).toEqual([failed, { grantId, eventId, receivers: [accepted, repaired] }]);
  });

  it('outlives the deliveries, and keeps what was purged before another delivery of the event settled', async () => {
    const t = await setupNotified();
    await t.settle(t.first, 'delivered', 200);
    await t.settle(t.second, 'exhausted', 500);
    await t.rollUp();
    const age = `update delivery set settled_at = settled_at - interval '40 days',
      created_at = created_at - interval '40 days' where webhook_id = $1`;
    await t.own(age, [t.first.id]);
    await t.rollUp();
    const purge = async () => (await t.worker.pool.query(purgeDeliveriesSql, [31, 100])).rows[0];
    expect(await purge()).toMatchObject({ deliveries: 1 });
    await t.own(`update delivery set state = 'queued', due_at = now(), settled_at = null`, []);
    await t.settle(t.second, 'delivered', 200);
    await t.rollUp();
    const both = [t.first, t.second].map(({ id }) => ({ webhookId: id, state: 'delivered', acknowledgedAt }));
    expect((await t.notified()).at(-1)).toMatchObject({ receivers: both });
    await t.own(age, [t.second.id]);
    await t.rollUp();
    expect(await purge()).toMatchObject({ deliveries: 1 });
    const [kept] = await t.own(
      `select a.detail -> 'receivers' as receivers,
         (select count(*)::int from event e where e.id = g.event_id) as events
       from grant_end g join audit_entry a on a.id = g.notified_entry_id`,
      [],
    );
    expect(kept).toEqual({ receivers: both, events: 0 });
  });

  it('is written by the later of two roll-ups that run at once', async () => {
    const t = await setupNotified();
    await t.settle(t.first, 'delivered', 200);
    await t.settle(t.second, 'delivered', 200);
    const earlier = await t.worker.pool.connect();
    await earlier.query('begin');
    await earlier.query('select from roll_up_ledger(0, 1)');
    const later = t.rollUp();
    await vi.waitFor(async () => {
      const waiting = await t.own(
        `select from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database()`,
        [],
      );
      expect(waiting).toHaveLength(1);
    }, patient);
    expect(await t.notified()).toEqual([]);
    await earlier.query('commit');
    earlier.release();
    await later;
    expect(await t.notified()).toHaveLength(1);
  });

  it('is not written for an end that no webhook is subscribed to', async () => {
    const t = await setupEnds();
    const id = await t.start();
    expect(await t.call('end_grant', { organization: t.organization, id })).toBe('changed');
    await rollUpLedger(t.worker, { settledForSeconds: 0 });
    expect(await t.entries()).toMatchObject([{ action: 'grant.ended', detail: { grantId: id, deliveries: 0 } }]);
  });
});
