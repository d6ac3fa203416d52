/**
 * Pausing, resuming and deleting webhooks, and the state of their deliveries, with concurrent
 * claims, attempts and writes.
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ClaimedDelivery } from '#delivery/sql/claim.ts';
import { purgeExpiredSecretsSql } from '#domain/webhooks/retention.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { Engine } from '#test/delivery-engine.ts';
import type { MadeWebhook } from '#test/make.ts';
import { Maintenance } from '../../../apps/worker/maintenance.ts';
import { daySeconds, setupWebhooks } from './subscriptions.ts';

async function setupStates() {
  const t = await setupWebhooks();
  const webhook: MadeWebhook = await t.make.webhook({ orgId: t.organizationId });
  /** An open delivery by default. */
  const open = (fields: Partial<Parameters<typeof t.make.delivery>[0]> = {}) => t.make.delivery({ webhook, ...fields });
  const engine = new Engine(t.database, t.owner);
  onTestFinished(() => engine.worker.end());
  const hook = { organizationId: t.organizationId, webhookId: webhook.id };
  const failedHours = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  return { ...t, webhook, id: webhook.id, open, engine, hook, failedHours };
}

describe('pausing a webhook', () => {
  it('holds open deliveries of every stage without an update, and leaves settled ones', async () => {
    const t = await setupStates();
    const open = [
      await t.open(),
      await t.open({ state: 'running' }),
      await t.open({ state: 'running', run: 3, attempts: [{ status: 500 }] }),
    ];
    await t.open({ state: 'delivered', attempts: [{ status: 204 }] });
    await t.open({ state: 'exhausted', attempts: [{ status: 410, endsSchedule: true }] });
    const before = await t.rows('select ctid, xmin, * from delivery order by event_id');

    expect(await t.pause(t.id)).toEqual({ state: 'paused', deliveries: 3 });

    expect(await t.rows('select ctid, xmin, * from delivery order by event_id')).toEqual(before);
    const listed = (await t.deliveries(t.id)).map(({ eventId, state, nextAttemptAt }) => ({
      eventId,
      state,
      nextAttemptAt,
    }));
    expect(listed.filter(({ state }) => state === 'held')).toEqual(
      // Events of one millisecond are ordered by their ids only.
      open
        .toSorted()
        .toReversed()
        .map((eventId) => ({ eventId, state: 'held', nextAttemptAt: null })),
    );
    expect(await t.deliveries(t.id, 'held')).toHaveLength(3);
    expect(await t.deliveries(t.id, 'waiting')).toEqual([]);
    expect(await t.delivery(t.id, open[2] ?? '')).toMatchObject({
      state: 'held',
      attempts: [{}],
      nextAttemptAt: null,
    });
    expect(await t.show(t.id)).toMatchObject({
      state: 'paused',
      suspendedReason: null,
      deliveries: { waiting: 0, held: 3, delivered: 1, exhausted: 1, cancelled: 0 },
    });
    expect((await t.entries()).at(-1)).toEqual({
      action: 'webhook.pause',
      person_id: t.manager.userId,
      detail: { webhookId: t.id, deliveries: 3 },
    });
  });

  it('twice changes and records nothing more, and is rejected for a deleted one', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    expect(await t.pause(t.id)).toEqual({ state: 'paused', deliveries: 0 });
    expect((await t.entries()).map(({ action }) => action)).toEqual(['webhook.create', 'webhook.pause']);
    await t.remove(t.id);
    await expect(t.pause(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });

  it('holds events that happen meanwhile', async () => {
    const t = await setupStates();
    await t.pause(t.id);
    await t.make.grant({ professional: await t.make.member({ orgId: t.organizationId }) });
    expect((await t.deliveries(t.id)).map(({ state, nextAttemptAt }) => ({ state, nextAttemptAt }))).toEqual([
      { state: 'held', nextAttemptAt: null },
    ]);
  });

  it('admits no attempt of the run in progress, and claims nothing', async () => {
    const t = await setupStates();
    await t.open();
    const [run] = await t.engine.claim([t.hook]);
    await t.open();
    await t.pause(t.id);
    expect(await t.engine.ask(run as ClaimedDelivery)).toEqual(expect.objectContaining({ decision: 'end' }));
    expect(await t.engine.claim([t.hook])).toEqual([]);
  });

  it('while relays claim gives every number once, and admits none of the claimed deliveries', async () => {
    const t = await setupStates();
    for (let event = 0; event < 40; event += 1) await t.open();
    const [, ...taken] = await Promise.all([
      t.pause(t.id),
      ...Array.from({ length: 6 }, () => t.engine.claim([t.hook])),
    ]);
    expect(taken.flat().length).toBeLessThanOrEqual(10);
    for (const run of taken.flat()) expect(await t.engine.ask(run)).toMatchObject({ decision: 'end' });
    await t.resume(t.id);
    await t.engine.claim([t.hook]);
    const numbers = await t.rows<{ sequence: string }>(
      'select sequence from delivery where sequence is not null order by sequence',
    );
    expect(numbers.map(({ sequence }) => Number(sequence))).toEqual(numbers.map((_, index) => index + 1));
  });

  it('waits for no attempt that is being recorded, and recording for no pause', async () => {
    const t = await setupStates();
    const eventId = await t.open();
    const [run] = await t.engine.claim([t.hook]);
    const attempt = await t.engine.admit(run as ClaimedDelivery);
    const recorder = await t.engine.worker.connect();
    await recorder.query('begin');
    await recorder.query('select from delivery where event_id = $1 for no key update', [eventId]);
    expect(await t.pause(t.id)).toEqual({ state: 'paused', deliveries: 1 });
    expect(await t.engine.record(attempt, {}, recorder)).toEqual({ state: 'running' });
    await recorder.query('commit');
    recorder.release();
    expect(await t.delivery(t.id, eventId)).toMatchObject({ state: 'held', attempts: [{ status: 500 }] });
  });
});

describe('resuming a webhook', () => {
  it('keeps the position in the schedule, sends what slept first, one at a time, and resets its failures', async () => {
    const t = await setupStates();
    const retrying = await t.open({ state: 'running', dueAt: t.failedHours(-20), attempts: [{ status: 500 }] });
    await t.rows('update receiver set failing_since = $1', [t.failedHours(80)]);
    await t.pause(t.id);
    const born = await t.open();
    await t.engine.requeueHeld();
    const before = await t.rows('select ctid, xmin, * from delivery order by event_id');

    expect(await t.resume(t.id)).toEqual({ state: 'active', deliveries: 2 });

    expect(await t.rows('select ctid, xmin, * from delivery order by event_id')).toEqual(before);
    expect(await t.readState(retrying)).toMatchObject({ state: 'queued', due: true, failures: 1 });
    expect(await t.readState(born)).toMatchObject({ state: 'queued', due: true, failures: 0 });
    expect(await t.show(t.id)).toMatchObject({
      state: 'active',
      suspendedReason: null,
      failingSince: null,
      concurrency: 1,
    });
    expect(await t.engine.claim([t.hook])).toMatchObject([{ eventId: retrying, run: 2 }]);
    expect((await t.entries()).at(-1)).toMatchObject({
      action: 'webhook.resume',
      detail: { webhookId: t.id, deliveries: 2 },
    });
  });

  it('that is active changes and records nothing, and is rejected for a deleted one', async () => {
    const t = await setupStates();
    expect(await t.resume(t.id)).toEqual({ state: 'active', deliveries: 0 });
    expect(await t.show(t.id)).toMatchObject({ concurrency: 10 });
    expect((await t.entries()).map(({ action }) => action)).toEqual(['webhook.create']);
    await t.remove(t.id);
    await expect(t.resume(t.id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });
});

describe('deleting a webhook', () => {
  it('cancels open and held deliveries visibly, erases its secrets, and keeps the history', async () => {
    const t = await setupStates();
    await t.rotate(t.id);
    const open = await t.open({ state: 'running', attempts: [{ status: 500 }] });
    const born = await t.open();
    const delivered = await t.open({ state: 'delivered', attempts: [{ status: 204 }] });

    expect(await t.remove(t.id)).toEqual({ state: 'deleted', deliveries: 2 });

    expect(await t.readState(open)).toMatchObject({ state: 'cancelled', due: null, settled: true });
    expect(await t.readState(born)).toMatchObject({ state: 'cancelled', settled: true });
    expect((await t.delivery(t.id, delivered)).attempts).toMatchObject([{ number: 1, status: 204, cause: 'accepted' }]);
    expect(await t.rows('select from webhook_secret')).toEqual([]);
    expect(await t.list()).toEqual([]);
    expect(await t.show(t.id)).toMatchObject({ state: 'deleted', secrets: [], deliveries: { cancelled: 2 } });
    const entries = (await t.entries()).slice(-2).sort((a, b) => a.action.localeCompare(b.action));
    expect(entries).toEqual([
      { action: 'delivery.cancel', person_id: t.manager.userId, detail: { webhookId: t.id, deliveries: 2 } },
      { action: 'webhook.delete', person_id: t.manager.userId, detail: { webhookId: t.id, deliveries: 2 } },
    ]);
    expect(await t.remove(t.id)).toEqual({ state: 'deleted', deliveries: 0 });
    expect(await t.entries()).toHaveLength(4);
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
    const maintenance = new Maintenance({
      server: parsePostgresUrl(databaseUrl),
      auditLogRetentionDays: 730,
      deliveryRetentionDays: 90,
      suspendAfterSeconds: 72 * 3_600,
      everyMs: 50,
      onError: (cause) => errors.push(cause),
    });
    await maintenance.start();
    onTestFinished(() => maintenance.stop());
    return { errors };
  }

  it('suspends a webhook that has failed for SUSPEND_AFTER, and records it', async () => {
    const t = await setupStates();
    const lately = t.failedHours(1);
    const failed = { state: 'running' as const, attempts: [{ status: 500, startedAt: lately }] };
    const failing = [await t.open(failed), await t.open(failed)];
    const exhausted = await t.open({
      state: 'exhausted',
      attempts: [{ status: 410, startedAt: lately, endsSchedule: true }],
    });
    await t.rows('update receiver set failing_since = $1, exhausted_in_row = 2', [t.failedHours(73)]);

    const { errors } = await startMaintenance(t.database.urls.worker);

    await vi.waitFor(
      async () => {
        for (const eventId of failing) expect(await t.delivery(t.id, eventId)).toMatchObject({ state: 'held' });
      },
      { timeout: 30_000 },
    );
    expect(await t.readState(exhausted)).toMatchObject({ state: 'exhausted' });
    expect(await t.show(t.id)).toMatchObject({ state: 'suspended', suspendedReason: 'failures' });
    const entry = (await t.entries()).at(-1);
    expect(entry).toMatchObject({ action: 'webhook.suspend', person_id: null });
    expect(entry?.detail).toEqual({
      webhookId: t.id,
      reason: 'failures',
      failingSince: (await t.show(t.id)).failingSince,
    });
    expect(errors).toEqual([]);
    // It can be resumed.
    expect(await t.resume(t.id)).toEqual({ state: 'active', deliveries: 2 });
  });

  it('cancels deliveries that were stored while their webhook was being deleted, in several statements', async () => {
    const t = await setupStates();
    const active = await t.make.webhook({ orgId: t.organizationId });
    await t.remove(t.id);
    for (let event = 0; event < 7; event += 1) await t.open();
    const right = await t.make.delivery({ webhook: active });
    const moved: unknown[] = [];
    for (;;) {
      const [row] = await t.engine.cancelDeleted([], 3);
      if (row === undefined) break;
      moved.push(row.deliveries);
    }
    expect(moved).toEqual([3, 3, 1]);
    expect(await t.readState(right)).toMatchObject({ state: 'queued' });
    const cancelled = (await t.entries()).filter(({ action }) => action === 'delivery.cancel');
    expect(cancelled.map(({ person_id, detail }) => [person_id, detail])).toEqual(
      moved.map((deliveries) => [null, { webhookId: t.id, deliveries }]),
    );
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
    await vi.waitFor(async () => expect((await t.show(t.id)).secrets).toHaveLength(1), { timeout: 30_000 });
  });
});
