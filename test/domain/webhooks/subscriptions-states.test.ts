/** Pausing, resuming and deleting webhooks, and what becomes of their deliveries, also while others claim, attempt and write. Source: design, section 6. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { admitAttemptSql } from '#domain/db/queries/attempts.ts';
import { claimDeliveriesSql } from '#domain/db/queries/claim-deliveries.ts';
import { eraseExpiredSecretsSql, mendDeliveriesSql } from '#domain/db/queries/park-webhooks.ts';
import type { MadeWebhook } from '#test/make.ts';
import { recordOutcome } from '#test/record-outcome.ts';
import { createMaintenance } from '../../../apps/worker/maintenance.ts';
import { daySeconds, setupWebhooks } from './subscriptions.ts';

const untouched = { started: false, claimed: false, leased_until: null };
const parked = { ...untouched, state: 'parked', due: false, settled: false };
const waiting = { ...untouched, state: 'waiting', due: true, settled: false };

async function setupStates() {
  const t = await setupWebhooks();
  const webhook: MadeWebhook = await t.make.webhook({ orgId: t.organizationId });
  /** A waiting delivery, claimed by a relay or with its workflow started. */
  const open = (fields: Partial<Parameters<typeof t.make.delivery>[0]> = {}) => t.make.delivery({ webhook, ...fields });
  const mend = async () => await t.rows<Record<string, unknown>>(mendDeliveriesSql, [1_000, null]);
  const failedHours = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  return { ...t, webhook, id: webhook.id, open, mend, failedHours };
}

describe('pausing a webhook', () => {
  it('parks what is open in a new round, whatever stage it is at, and leaves what is settled', async () => {
    const t = await setupStates();
    const fresh = await t.open();
    const claimed = await t.open({ claimed: true });
    const retrying = await t.open({ started: true, round: 3, attempts: [{ status: 500 }] });
    const delivered = await t.open({ state: 'delivered', attempts: [{ status: 204 }] });
    const exhausted = await t.open({ state: 'exhausted', attempts: [{ status: 410, isLast: true }] });

    expect(await t.pause(t.id)).toEqual({ deliveries: 3 });

    expect(await t.stateOf(fresh)).toEqual({ ...parked, round: 2 });
    expect(await t.stateOf(claimed)).toEqual({ ...parked, round: 2 });
    expect(await t.stateOf(retrying)).toEqual({ ...parked, round: 4 });
    expect(await t.stateOf(delivered)).toMatchObject({ state: 'delivered', round: 1 });
    expect(await t.stateOf(exhausted)).toMatchObject({ state: 'exhausted', round: 1 });
    expect(await t.show(t.id)).toMatchObject({
      ...{ state: 'parked', parkedReason: 'paused' },
      deliveries: { waiting: 0, parked: 3, delivered: 1, exhausted: 1, cancelled: 0 },
    });
    expect((await t.lines()).at(-1)).toEqual({
      ...{ action: 'webhook.pause', person_id: t.manager.userId, detail: { webhookId: t.id, deliveries: 3 } },
    });
  });

  it('twice changes nothing and writes no second line; a deleted one is refused', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    expect(await t.pause(t.id)).toEqual({ deliveries: 0 });
    expect((await t.lines()).map(({ action }) => action)).toEqual(['webhook.create', 'webhook.pause']);
    await t.remove(t.id);
    await expect(t.pause(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });

  it('makes events that happen meanwhile parked obligations', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    await t.make.grant({ professional: await t.make.member({ orgId: t.organizationId }) });
    expect((await t.deliveries(t.id)).map(({ state, nextAttemptAt }) => ({ state, nextAttemptAt }))).toEqual([
      { state: 'parked', nextAttemptAt: null },
    ]);
  });

  it('admits no attempt of the round before, nor claims anything', async () => {
    const t = await setupStates();
    const eventId = await t.open({ started: true });
    await t.pause(t.id);
    expect(await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false])).toEqual([]);
    expect(await t.rows(claimDeliveriesSql, [10, 10, 15])).toEqual([]);
  });

  it('while relays claim leaves nothing waiting or claimed, and every number given once', async () => {
    const t = await setupStates();
    for (let event = 0; event < 40; event += 1) await t.open();
    const claims = Array.from({ length: 6 }, () => t.rows(claimDeliveriesSql, [10, 10, 15]));
    const [, ...claimed] = await Promise.all([t.pause(t.id), ...claims]);
    expect(claimed.flat().length).toBeLessThanOrEqual(10);
    await t.mend();
    expect(await t.rows('select distinct state, claimed, started from delivery')).toEqual([
      { state: 'parked', claimed: false, started: false },
    ]);
    await t.resume(t.id);
    await t.rows(claimDeliveriesSql, [10, 10, 15]);
    const numbers = await t.rows<{ sequence: string }>(
      'select sequence from delivery where sequence is not null order by sequence',
    );
    expect(numbers.map(({ sequence }) => Number(sequence))).toEqual(numbers.map((_, index) => index + 1));
  });

  it('and the record of an attempt never wait for each other', async () => {
    const t = await setupStates();
    const eventId = await t.open({ started: true });
    await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false]);
    // Whoever records an outcome holds the delivery's row, and then takes the webhook's.
    const recorder = await t.owner.pool.connect();
    onTestFinished(() => recorder.release());
    await recorder.query('begin');
    await recorder.query('select from delivery where event_id = $1 for no key update', [eventId]);
    expect(await t.pause(t.id)).toEqual({ deliveries: 0 });
    const outcome = [500, 'status', 'refused', '{}', null, 0, null, 'waiting', 5_000, true, null];
    const recorded = await recordOutcome(recorder, [t.organizationId, t.id, eventId, 1, ...outcome]);
    await recorder.query('commit');
    expect(recorded).toEqual([{ recorded: true, hasDelivery: true }]);
    // What the pause passed over, the sweep parks.
    expect(await t.mend()).toEqual([
      { organizationId: t.organizationId, webhookId: t.id, state: 'parked', deliveries: 1 },
    ]);
    expect(await t.stateOf(eventId)).toEqual({ ...parked, round: 2 });
  });
});

describe('resuming a webhook', () => {
  it('lets what is parked wait in a new round, due now, one at a time at first, and forgets its failures', async () => {
    const t = await setupStates();
    const retrying = await t.open({ started: true, attempts: [{ status: 500 }] });
    await t.rows('update webhook set failing_since = $1', [t.failedHours(80)]);
    await t.pause(t.id);
    const born = await t.open({ state: 'parked' });

    expect(await t.resume(t.id)).toEqual({ deliveries: 2 });

    expect(await t.stateOf(retrying)).toEqual({ ...waiting, round: 3 });
    expect(await t.stateOf(born)).toEqual({ ...waiting, round: 2 });
    expect(await t.show(t.id)).toMatchObject({ state: 'active', parkedReason: null, failingSince: null, ramp: 1 });
    expect(await t.rows(claimDeliveriesSql, [10, 10, 15])).toHaveLength(1);
    expect((await t.lines()).at(-1)).toMatchObject({
      ...{ action: 'webhook.resume', detail: { webhookId: t.id, deliveries: 2 } },
    });
  });

  it('an active one changes nothing and writes no line; a deleted one is refused', async () => {
    const t = await setupStates();
    expect(await t.resume(t.id)).toEqual({ deliveries: 0 });
    expect(await t.show(t.id)).toMatchObject({ ramp: null });
    expect((await t.lines()).map(({ action }) => action)).toEqual(['webhook.create']);
    await t.remove(t.id);
    await expect(t.resume(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });
});

describe('deleting a webhook', () => {
  it('cancels what is open or parked, visibly, erases its secrets, and keeps what was sent on record', async () => {
    const t = await setupStates();
    await t.rotate(t.id);
    const open = await t.open({ started: true, attempts: [{ status: 500 }] });
    const born = await t.open({ state: 'parked' });
    const delivered = await t.open({ state: 'delivered', attempts: [{ status: 204 }] });

    expect(await t.remove(t.id)).toEqual({ deliveries: 2 });

    expect(await t.stateOf(open)).toEqual({ ...untouched, state: 'cancelled', round: 2, due: false, settled: true });
    expect(await t.stateOf(born)).toMatchObject({ state: 'cancelled', settled: true });
    expect((await t.delivery(t.id, delivered)).attempts).toMatchObject([{ number: 1, status: 204, cause: 'accepted' }]);
    expect(await t.rows('select from webhook_secret')).toEqual([]);
    expect(await t.list()).toEqual([]);
    expect(await t.show(t.id)).toMatchObject({ state: 'deleted', secrets: [], deliveries: { cancelled: 2 } });
    const lines = (await t.lines()).slice(-2).sort((a, b) => a.action.localeCompare(b.action));
    expect(lines).toEqual([
      { action: 'delivery.cancel', person_id: t.manager.userId, detail: { webhookId: t.id, deliveries: 2 } },
      { action: 'webhook.delete', person_id: t.manager.userId, detail: { webhookId: t.id, deliveries: 2 } },
    ]);
    expect(await t.remove(t.id)).toEqual({ deliveries: 0 });
    expect(await t.lines()).toHaveLength(4);
  });

  it('sends it no event that happens afterwards', async () => {
    const t = await setupStates();
    await t.remove(t.id);
    await t.make.grant({ professional: await t.make.member({ orgId: t.organizationId }) });
    expect(await t.deliveries(t.id)).toEqual([]);
  });
});

describe('the sweep, by the worker’s own login', () => {
  async function startMaintenance(databaseUrl: string) {
    const errors: unknown[] = [];
    const counts = { rounds: 0 };
    const maintenance = createMaintenance({
      ...{
        databaseUrl,
        activityRetentionDays: 730,
        deliveryRetentionDays: 90,
        suspendAfterSeconds: 72 * 3_600,
        everyMs: 50,
      },
      onRound: () => {
        counts.rounds += 1;
      },
      onError: (cause) => errors.push(cause),
    });
    await maintenance.start();
    onTestFinished(() => maintenance.stop());
    return { errors, counts };
  }

  it('suspends a webhook that has failed for SUSPEND_AFTER, and records it', async () => {
    const t = await setupStates();
    const lately = t.failedHours(1);
    const failed = { started: true, attempts: [{ status: 500, startedAt: lately }] };
    const failing = [await t.open(failed), await t.open(failed)];
    const exhausted = await t.open({
      state: 'exhausted',
      attempts: [{ status: 410, startedAt: lately, isLast: true }],
    });
    await t.rows(
      'update webhook set failing_since = $1, failing_seconds = 73 * 3600, last_failed_at = now(), has_failed_twice = true',
      [t.failedHours(73)],
    );

    const { errors } = await startMaintenance(t.database.urls.worker);

    await vi.waitFor(async () => {
      for (const eventId of failing) expect(await t.stateOf(eventId)).toEqual({ ...parked, round: 2 });
    });
    expect(await t.stateOf(exhausted)).toMatchObject({ state: 'exhausted' });
    expect(await t.show(t.id)).toMatchObject({ state: 'parked', parkedReason: 'failing' });
    const line = (await t.lines()).at(-1);
    expect(line).toMatchObject({ action: 'webhook.park', person_id: null });
    expect(line?.detail).toEqual({
      webhookId: t.id,
      reason: 'failing',
      failingSince: (await t.show(t.id)).failingSince,
    });
    expect(errors).toEqual([]);
    // And it comes back.
    expect(await t.resume(t.id)).toEqual({ deliveries: 2 });
  });

  it('mends what races leave: waiting ones of a parked webhook, parked ones of an active one, open ones of a deleted one', async () => {
    const t = await setupStates();
    const [paused, active, deleted] = await Promise.all(
      [1, 2, 3].map(() => t.make.webhook({ orgId: t.organizationId })),
    );
    if (!paused || !active || !deleted) throw new Error('three webhooks');
    await t.pause(paused.id);
    await t.remove(deleted.id);
    const late = await t.make.delivery({ webhook: paused });
    const early = await t.make.delivery({ webhook: active, state: 'parked' });
    const lost = [
      await t.make.delivery({ webhook: deleted }),
      await t.make.delivery({ webhook: deleted, state: 'parked' }),
    ];
    const right = await t.make.delivery({ webhook: active, started: true });

    const { errors, counts } = await startMaintenance(t.database.urls.worker);

    await vi.waitFor(async () => {
      expect(await t.stateOf(late)).toEqual({ ...parked, round: 2 });
      expect(await t.stateOf(early)).toEqual({ ...waiting, round: 2 });
      for (const eventId of lost) expect(await t.stateOf(eventId)).toMatchObject({ state: 'cancelled', settled: true });
    });
    const before = counts.rounds;
    await vi.waitFor(() => expect(counts.rounds).toBeGreaterThan(before + 2));
    expect(await t.stateOf(right)).toMatchObject({ state: 'waiting', round: 1, started: true });
    const cancelled = (await t.lines()).filter(({ action }) => action === 'delivery.cancel');
    expect(cancelled).toEqual([
      { action: 'delivery.cancel', person_id: null, detail: { webhookId: deleted.id, deliveries: 2 } },
    ]);
    expect(errors).toEqual([]);
  });

  it('moves the rest of more deliveries than one statement may', async () => {
    const t = await setupStates();
    for (let event = 0; event < 7; event += 1) await t.open();
    await t.rows(`update webhook set state = 'parked', parked_reason = 'paused'`);
    const moved: unknown[] = [];
    for (;;) {
      const [row] = await t.rows<{ deliveries: number }>(mendDeliveriesSql, [3, null]);
      if (row === undefined) break;
      moved.push(row.deliveries);
    }
    expect(moved).toEqual([3, 3, 1]);
  });

  it('erases secrets whose overlap is over, and no other', async () => {
    const t = await setupStates();
    await t.rotate(t.id, daySeconds);
    await t.rotate(t.id, daySeconds);
    await t.rows(`update webhook_secret set valid_until = now() - interval '1 second'
      where id = (select id from webhook_secret where valid_until is not null order by created_at limit 1)`);
    await t.rows(eraseExpiredSecretsSql);
    expect((await t.show(t.id)).secrets.map(({ validUntil }) => validUntil === null)).toEqual([true, false]);
    await t.rows(`update webhook_secret set valid_until = now() where valid_until is not null`);
    await startMaintenance(t.database.urls.worker);
    await vi.waitFor(async () => expect((await t.show(t.id)).secrets).toHaveLength(1));
  });
});
