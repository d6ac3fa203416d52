/**
 * Pausing, resuming and deleting webhooks, and the state of their deliveries, with concurrent
 * claims, attempts and writes.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { admitAttemptSql } from '#domain/db/statements/attempts.ts';
import { claimDeliveriesSql } from '#domain/db/statements/claim-deliveries.ts';
import {
  cancelDeliveriesSql,
  purgeExpiredSecretsSql,
  restartDeliveriesSql,
} from '#domain/db/statements/park-webhooks.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { claimValues } from '#test/claim.ts';
import type { MadeWebhook } from '#test/make.ts';
import { recordOutcome } from '#test/record-outcome.ts';
import { createMaintenance } from '../../../apps/worker/maintenance.ts';
import { daySeconds, setupWebhooks } from './subscriptions.ts';

/** Size and lease of one claim. */
const untouched = { started: false, claimed: false, leased_until: null };
const waiting = { ...untouched, state: 'waiting', due: true, settled: false };

async function setupStates() {
  const t = await setupWebhooks();
  const webhook: MadeWebhook = await t.make.webhook({ orgId: t.organizationId });
  /** A waiting delivery, claimed by a relay or with its workflow started. */
  const open = (fields: Partial<Parameters<typeof t.make.delivery>[0]> = {}) => t.make.delivery({ webhook, ...fields });
  const restart = (atMost = 1_000) => t.rows<{ deliveries: number }>(restartDeliveriesSql, [atMost]);
  const failedHours = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  return { ...t, webhook, id: webhook.id, open, restart, failedHours };
}

describe('pausing a webhook', () => {
  it('parks open deliveries of every stage without an update, and leaves settled ones', async () => {
    const t = await setupStates();
    const open = [
      await t.open(),
      await t.open({ claimed: true }),
      await t.open({ started: true, round: 3, attempts: [{ status: 500 }] }),
    ];
    await t.open({ state: 'delivered', attempts: [{ status: 204 }] });
    await t.open({ state: 'exhausted', attempts: [{ status: 410, isLast: true }] });
    const before = await t.rows('select ctid, xmin, * from delivery order by event_id');

    expect(await t.pause(t.id)).toEqual({ deliveries: 3 });

    expect(await t.rows('select ctid, xmin, * from delivery order by event_id')).toEqual(before);
    const listed = (await t.deliveries(t.id)).map(({ eventId, state, nextAttemptAt }) => ({
      eventId,
      state,
      nextAttemptAt,
    }));
    expect(listed.filter(({ state }) => state === 'parked')).toEqual(
      // Events of one millisecond are ordered by their ids only.
      open
        .toSorted()
        .toReversed()
        .map((eventId) => ({ eventId, state: 'parked', nextAttemptAt: null })),
    );
    expect(await t.deliveries(t.id, 'parked')).toHaveLength(3);
    expect(await t.deliveries(t.id, 'waiting')).toEqual([]);
    expect(await t.delivery(t.id, open[2] ?? '')).toMatchObject({ state: 'parked', round: 3, nextAttemptAt: null });
    expect(await t.show(t.id)).toMatchObject({
      state: 'parked',
      parkedReason: 'paused',
      deliveries: { waiting: 0, parked: 3, delivered: 1, exhausted: 1, cancelled: 0 },
    });
    expect((await t.lines()).at(-1)).toEqual({
      action: 'webhook.pause',
      person_id: t.manager.userId,
      detail: { webhookId: t.id, deliveries: 3 },
    });
  });

  it('twice changes and records nothing more, and is refused for a deleted one', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    expect(await t.pause(t.id)).toEqual({ deliveries: 0 });
    expect((await t.lines()).map(({ action }) => action)).toEqual(['webhook.create', 'webhook.pause']);
    await t.remove(t.id);
    await expect(t.pause(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });

  it('parks events that happen meanwhile', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    await t.make.grant({ professional: await t.make.member({ orgId: t.organizationId }) });
    expect((await t.deliveries(t.id)).map(({ state, nextAttemptAt }) => ({ state, nextAttemptAt }))).toEqual([
      { state: 'parked', nextAttemptAt: null },
    ]);
  });

  it('admits no attempt of the earlier round, and claims nothing', async () => {
    const t = await setupStates();
    const eventId = await t.open({ started: true });
    await t.pause(t.id);
    expect(await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false, randomUUID()])).toEqual([]);
    expect(await t.rows(claimDeliveriesSql, await claimValues(t.owner.pool, { prompt: 10 }))).toEqual([]);
  });

  it('while relays claim gives every number once, and admits none of the claimed deliveries', async () => {
    const t = await setupStates();
    for (let event = 0; event < 40; event += 1) await t.open();
    const values = await claimValues(t.owner.pool, { prompt: 10 });
    const claims = Array.from({ length: 6 }, () => t.rows<{ eventId: string }>(claimDeliveriesSql, values));
    const [, ...taken] = await Promise.all([t.pause(t.id), ...claims]);
    expect(taken.flat().length).toBeLessThanOrEqual(10);
    for (const { eventId } of taken.flat())
      expect(await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false, randomUUID()])).toEqual(
        [],
      );
    await t.resume(t.id);
    await t.rows('update delivery set leased_until = null, started = claimed');
    for (const { eventId } of taken.flat())
      expect(await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false, randomUUID()])).toEqual(
        [],
      );
    await t.restart();
    await t.rows(claimDeliveriesSql, await claimValues(t.owner.pool, { prompt: 10 }));
    const numbers = await t.rows<{ sequence: string }>(
      'select sequence from delivery where sequence is not null order by sequence',
    );
    expect(numbers.map(({ sequence }) => Number(sequence))).toEqual(numbers.map((_, index) => index + 1));
  });

  it('never deadlocks with the recording of an attempt', async () => {
    const t = await setupStates();
    const eventId = await t.open({ started: true });
    await t.rows(admitAttemptSql, [t.organizationId, t.id, eventId, 1, false, false, randomUUID()]);
    // Recording an outcome locks the delivery's row first, and then the webhook's.
    const recorder = await t.owner.pool.connect();
    onTestFinished(() => recorder.release());
    await recorder.query('begin');
    await recorder.query('select from delivery where event_id = $1 for no key update', [eventId]);
    expect(await t.pause(t.id)).toEqual({ deliveries: 1 });
    const outcome = [500, 'status', 'refused', '{}', null, 0, null, 'waiting', 5_000, true, null];
    const recorded = await recordOutcome(recorder, [t.organizationId, t.id, eventId, 1, ...outcome]);
    await recorder.query('commit');
    expect(recorded).toEqual([{ recorded: true, hasDelivery: true }]);
    expect(await t.delivery(t.id, eventId)).toMatchObject({ state: 'parked', round: 1 });
  });
});

describe('resuming a webhook', () => {
  it('restarts started deliveries in a new round that is due now, one at a time at first, and resets its failures', async () => {
    const t = await setupStates();
    const retrying = await t.open({ started: true, nextAttemptAt: t.failedHours(-20), attempts: [{ status: 500 }] });
    await t.rows('update webhook set failing_since = $1', [t.failedHours(80)]);
    await t.pause(t.id);
    const born = await t.open();
    const before = await t.rows('select ctid, xmin, * from delivery order by event_id');

    expect(await t.resume(t.id)).toEqual({ deliveries: 2 });

    expect(await t.rows('select ctid, xmin, * from delivery order by event_id')).toEqual(before);
    expect(await t.rows(admitAttemptSql, [t.organizationId, t.id, retrying, 1, false, false, randomUUID()])).toEqual(
      [],
    );
    expect(await t.restart()).toMatchObject([{ webhookId: t.id, deliveries: 1 }]);
    expect(await t.stateOf(retrying)).toEqual({ ...waiting, round: 2 });
    expect(await t.stateOf(born)).toEqual({ ...waiting, round: 1 });
    expect(await t.show(t.id)).toMatchObject({ state: 'active', parkedReason: null, failingSince: null, ramp: 1 });
    expect(await t.rows(claimDeliveriesSql, await claimValues(t.owner.pool, { prompt: 10 }))).toMatchObject([
      { eventId: retrying, round: 2 },
    ]);
    expect((await t.lines()).at(-1)).toMatchObject({
      action: 'webhook.resume',
      detail: { webhookId: t.id, deliveries: 2 },
    });
    expect(await t.restart()).toEqual([]);
  });

  it('restarts a bounded number of deliveries ahead of the relay, oldest first, until all were restarted', async () => {
    const t = await setupStates();
    const events: string[] = [];
    for (let hour = 10; hour > 3; hour -= 1)
      events.push(await t.open({ started: true, createdAt: t.failedHours(hour), nextAttemptAt: t.failedHours(hour) }));
    await t.pause(t.id);
    for (let event = 0; event < 5; event += 1) await t.open();
    await t.resume(t.id);

    expect(await t.restart(3)).toMatchObject([{ deliveries: 3 }]);
    expect(await t.restart(3)).toEqual([]);
    const restarted = await t.rows<{ event_id: string }>(
      'select event_id from delivery where round = 2 order by created_at',
    );
    expect(restarted.map(({ event_id }) => event_id)).toEqual(events.slice(0, 3));
    await t.rows(`update webhook set ramp = null`);
    const first = await t.rows<{ eventId: string }>(
      claimDeliveriesSql,
      await claimValues(t.owner.pool, { prompt: 10 }),
    );
    expect(
      first
        .map(({ eventId }) => eventId)
        .slice(0, 3)
        .sort(),
    ).toEqual(events.slice(0, 3).sort());
    await t.rows('update delivery set started = true, leased_until = null where claimed');
    expect(await t.restart(3)).toMatchObject([{ deliveries: 3 }]);
    expect(await t.restart(100)).toMatchObject([{ deliveries: 1 }]);
    expect(await t.restart(100)).toEqual([]);

    expect(await t.rows('select from webhook where follow_until is not null')).toHaveLength(1);
    await t.rows(`update webhook set follow_until = now() - interval '1 second'`);
    await t.restart(100);
    expect(await t.rows('select from webhook where follow_until is not null')).toEqual([]);
  });

  it('that is active changes and records nothing, and is refused for a deleted one', async () => {
    const t = await setupStates();
    expect(await t.resume(t.id)).toEqual({ deliveries: 0 });
    expect(await t.show(t.id)).toMatchObject({ ramp: null });
    expect((await t.lines()).map(({ action }) => action)).toEqual(['webhook.create']);
    await t.remove(t.id);
    await expect(t.resume(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });
});

describe('deleting a webhook', () => {
  it('cancels open and parked deliveries visibly, erases its secrets, and keeps the history', async () => {
    const t = await setupStates();
    await t.rotate(t.id);
    const open = await t.open({ started: true, attempts: [{ status: 500 }] });
    const born = await t.open();
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

  it('sends it no later event', async () => {
    const t = await setupStates();
    await t.remove(t.id);
    await t.make.grant({ professional: await t.make.member({ orgId: t.organizationId }) });
    expect(await t.deliveries(t.id)).toEqual([]);
  });
});

describe('the maintenance, with the worker’s own login', () => {
  async function startMaintenance(databaseUrl: string) {
    const errors: unknown[] = [];
    const counts = { rounds: 0 };
    const maintenance = createMaintenance({
      server: parsePostgresUrl(databaseUrl),
      activityRetentionDays: 730,
      deliveryRetentionDays: 90,
      suspendAfterSeconds: 72 * 3_600,
      everyMs: 50,
      onRun: () => {
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
      'update webhook set failing_since = $1, failing_seconds = 73 * 3600, last_failed_at = now(), ' +
        'has_failed_twice = true',
      [t.failedHours(73)],
    );

    const { errors } = await startMaintenance(t.database.urls.worker);

    await vi.waitFor(async () => {
      for (const eventId of failing)
        expect(await t.delivery(t.id, eventId)).toMatchObject({ state: 'parked', round: 1 });
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
    // It can be resumed.
    expect(await t.resume(t.id)).toEqual({ deliveries: 2 });
  });

  it('cancels deliveries that were stored while their webhook was being deleted, and leaves active ones', async () => {
    const t = await setupStates();
    const [active, deleted] = [
      await t.make.webhook({ orgId: t.organizationId }),
      await t.make.webhook({ orgId: t.organizationId }),
    ];
    await t.remove(deleted.id);
    const late = [await t.make.delivery({ webhook: deleted }), await t.make.delivery({ webhook: deleted })];
    const right = await t.make.delivery({ webhook: active, started: true });

    const { errors, counts } = await startMaintenance(t.database.urls.worker);

    await vi.waitFor(async () => {
      for (const eventId of late) expect(await t.stateOf(eventId)).toMatchObject({ state: 'cancelled', settled: true });
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

  it('cancels more deliveries than one statement may, in several', async () => {
    const t = await setupStates();
    await t.remove(t.id);
    for (let event = 0; event < 7; event += 1) await t.open();
    const moved: unknown[] = [];
    for (;;) {
      const [row] = await t.rows<{ deliveries: number }>(cancelDeliveriesSql, [3]);
      if (row === undefined) break;
      moved.push(row.deliveries);
    }
    expect(moved).toEqual([3, 3, 1]);
  });

  it('erases secrets whose overlap has ended, and no other', async () => {
    const t = await setupStates();
    await t.rotate(t.id, daySeconds);
    await t.rotate(t.id, daySeconds);
    await t.rows(`update webhook_secret set valid_until = now() - interval '1 second'
      where id = (select id from webhook_secret where valid_until is not null order by created_at limit 1)`);
    await t.rows(purgeExpiredSecretsSql);
    expect((await t.show(t.id)).secrets.map(({ validUntil }) => validUntil === null)).toEqual([true, false]);
    await t.rows(`update webhook_secret set valid_until = now() where valid_until is not null`);
    await startMaintenance(t.database.urls.worker);
    await vi.waitFor(async () => expect((await t.show(t.id)).secrets).toHaveLength(1));
  });
});
