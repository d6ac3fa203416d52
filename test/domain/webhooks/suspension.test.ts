/**
 * When a webhook is suspended. The real statements record attempts, and time passes by moving their
 * rows into the past.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { defaultDelaysMs, jitter } from '#delivery/schedule.ts';
import { admitAttemptSql } from '#domain/db/statements/attempts.ts';
import { suspendFailingWebhooksSql } from '#domain/db/statements/park-webhooks.ts';
import { suspendTriedWithinSeconds } from '#domain/webhooks/limits.ts';
import { recordOutcome } from '#test/record-outcome.ts';
import { workerEnvironment } from '#test/worker.ts';
import { readConfig } from '../../../apps/worker/config.ts';
import { setupWebhooks } from './subscriptions.ts';

const hourMs = 3_600_000;
const minuteMs = 60_000;
const suspendAfterSeconds = 84 * 3_600;

async function setupSuspension() {
  const t = await setupWebhooks();
  const webhook = await t.make.webhook({ orgId: t.organizationId });
  let passedMs = 0;

  /** Lets time pass: moves everything that happened into the past. */
  async function pass(ms: number): Promise<void> {
    passedMs += ms;
    const by = [ms / 1_000];
    await t.rows(
      `update webhook set failing_since = failing_since - make_interval(secs => $1),
         last_failed_at = last_failed_at - make_interval(secs => $1), next_failure_by = next_failure_by -
           make_interval(secs => $1)`,
      by,
    );
    await t.rows('update delivery set next_attempt_at = next_attempt_at - make_interval(secs => $1)', by);
    await t.rows('update delivery_attempt set started_at = started_at - make_interval(secs => $1)', by);
  }

  /**
   * Records one attempt of a delivery, due again in `waitMs`; null for the last of the schedule.
   */
  async function attempt(
    eventId: string,
    waitMs: number | null,
    { status = 500 as number | null, isReceivers = true } = {},
  ): Promise<void> {
    const delivery = [t.organizationId, webhook.id, eventId];
    const [admitted] = await t.rows<{ number: number }>(admitAttemptSql, [
      ...delivery,
      1,
      waitMs === null,
      false,
      randomUUID(),
    ]);
    const isDelivered = status !== null && status < 300;
    const follows = isDelivered ? 'delivered' : waitMs === null ? 'exhausted' : 'waiting';
    const outcome = [status, isDelivered ? 'accepted' : 'status', 'said', '{}', null, 0, null];
    await recordOutcome(t.owner.pool, [
      ...delivery,
      admitted?.number,
      ...outcome,
      follows,
      waitMs,
      isReceivers && !isDelivered,
      null,
    ]);
  }

  const isSuspended = async (afterSeconds = suspendAfterSeconds): Promise<boolean> => {
    await t.rows(suspendFailingWebhooksSql, [afterSeconds, suspendTriedWithinSeconds]);
    return (await t.show(webhook.id)).state === 'parked';
  };

  return {
    ...t,
    webhook,
    pass,
    attempt,
    isSuspended,
    passedHours: () => passedMs / hourMs,
    open: () => t.make.delivery({ webhook, started: true }),
    /**
     * Makes an attempt of each event every four hours, for `hours`. Returns the hours until the
     * suspension, or null without one.
     */
    async fail(events: string[], hours: number): Promise<number | null> {
      for (let hour = 0; hour <= hours; hour += 4) {
        for (const eventId of events) await attempt(eventId, 4 * hourMs);
        if (await isSuspended()) return hour;
        await pass(4 * hourMs);
      }
      return null;
    },
  };
}

describe('suspension of a webhook', () => {
  it('waits for the 13th attempt of every event, also with the longest jitter', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open()];
    for (const delayMs of [...defaultDelaysMs, null]) {
      const waitMs = delayMs === null ? null : delayMs * (1 + jitter);
      for (const eventId of events) await t.attempt(eventId, waitMs);
      expect(await t.isSuspended(), `after ${t.passedHours()} h`).toBe(false);
      await t.pass(waitMs ?? 0);
    }
    expect(await t.rows('select distinct state, attempts from delivery')).toEqual([
      { state: 'exhausted', attempts: 13 },
    ]);
    expect(t.passedHours()).toBeGreaterThan(79);
  });

  it('happens after two failed events and no accepted one for the configured time, and has its reason', async () => {
    const t = await setupSuspension();
    expect(await t.fail([await t.open(), await t.open()], 200)).toBe(84);
    const line = (await t.lines()).at(-1);
    expect(line).toMatchObject({ action: 'webhook.park', person_id: null });
    expect(line?.detail).toMatchObject({ webhookId: t.webhook.id, reason: 'failing' });
  });

  it('never happens for a single failing event', async () => {
    const t = await setupSuspension();
    expect(await t.fail([await t.open()], 200)).toBeNull();
  });

  it('begins again after an accepted event', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open()];
    expect(await t.fail(events, 80)).toBeNull();
    await t.attempt(await t.open(), null, { status: 204 });
    expect(await t.fail(events, 76)).toBeNull();
    expect(await t.fail(events, 12)).toBe(4);
  });

  it('does not count days without an attempt by the service', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open()];
    expect(await t.fail(events, 8)).toBeNull();
    await t.pass(5 * 24 * hourMs);
    expect(await t.fail(events, 60)).toBeNull();
    expect(await t.fail(events, 60)).not.toBeNull();
  });

  it('does not count days of internal errors', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open()];
    expect(await t.fail(events, 8)).toBeNull();
    for (let hour = 0; hour < 120; hour += 4) {
      for (const eventId of events) await t.attempt(eventId, 4 * hourMs, { status: null, isReceivers: false });
      await t.pass(4 * hourMs);
      expect(await t.isSuspended()).toBe(false);
    }
    expect(await t.fail(events, 60)).toBeNull();
  });

  it('does not count an outage that begins while one event waits for hours and another is due at once', async () => {
    const t = await setupSuspension();
    const [slow, quick] = [await t.open(), await t.open()];
    await t.attempt(quick, 5_000);
    await t.attempt(slow, 100 * hourMs);
    await t.pass(100 * hourMs);
    for (const eventId of [slow, quick]) await t.attempt(eventId, 5_000);
    expect(await t.isSuspended()).toBe(false);
  });

  it('does not count weeks without an open delivery', async () => {
    const t = await setupSuspension();
    for (let week = 0; week < 4; week += 1) {
      await t.attempt(await t.open(), null);
      expect(await t.isSuspended()).toBe(false);
      await t.pass(7 * 24 * hourMs);
    }
  });

  it('happens also when a backlog makes all attempts late', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open(), await t.open()];
    for (const eventId of events) await t.attempt(eventId, 1_000);
    let minutes = 0;
    for (; minutes < 240 && !(await t.isSuspended(2 * 3_600)); minutes += 4) {
      await t.pass(4 * minuteMs);
      await t.attempt(events[(minutes / 4) % 3] ?? '', 1_000);
    }
    expect(minutes).toBe(120);
  });

  it('does not happen to a webhook without a recent attempt', async () => {
    const t = await setupSuspension();
    const events = [await t.open(), await t.open()];
    expect(await t.fail(events, 40)).toBeNull();
    await t.rows(`update webhook set failing_seconds = 100 * 3600, failing_since = now() - interval '100 hours'`);
    await t.pass(hourMs);
    expect(await t.isSuspended()).toBe(false);
    await t.attempt(events[0] ?? '', 5_000);
    expect(await t.isSuspended()).toBe(true);
  });
});

describe('SUSPEND_AFTER', () => {
  it('is longer than the schedule by default, and is refused when it is shorter', async () => {
    const t = await setupWebhooks();
    const read = (settings: Record<string, string>) =>
      readConfig(workerEnvironment(t.database, settings)).suspendAfterSeconds;
    const longestSeconds = (defaultDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0) / 1_000) * (1 + jitter);
    expect(read({}) - longestSeconds).toBeGreaterThan(3_600);
    expect(Math.round(read({}) / 3_600)).toBe(83);
    expect(read({ SUSPEND_AFTER: '5d' })).toBe(5 * 86_400);
    expect(read({ DELIVERY_SCHEDULE: '1s,2s', SUSPEND_AFTER: '10s' })).toBe(10);
    for (const refused of ['72h', '0d', 'never', '84']) {
      expect(() => read({ SUSPEND_AFTER: refused }), refused).toThrow(/SUSPEND_AFTER.* must be/);
    }
  });
});
