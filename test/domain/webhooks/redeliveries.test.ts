/** Redeliveries of a range: requested, shown, cancelled, and executed page by page. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { redeliverPage } from '#delivery/redelivery.ts';
import type { Authority } from '#domain/access/authority.ts';
import { openDatabase } from '#domain/open-database.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import {
  cancelRedelivery,
  findRedelivery,
  listRedeliveries,
  requestRedelivery,
  type Selection,
} from '#domain/webhooks/redeliveries.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { nowhere, setupWebhooks } from './subscriptions.ts';

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
const lately: Selection = { failedSince: hoursAgo(10).toISOString() };
const counts = 'select state, seen, queued, finished_at is not null as finished from redelivery';

describe('requesting a redelivery', () => {
  it('writes a row and an audit entry, and is rejected without the permission, empty, too old, and for an inactive webhook', async () => {
    const t = await setupRedeliveries();
    const requested = await t.request(lately);
    expect(requested).toMatchObject({
      organizationId: t.organizationId,
      webhookId: t.webhook.id,
      state: 'requested',
      requestedBy: t.manager.userId,
      ...lately,
      from: null,
      to: null,
      endReason: null,
      cancelRequestedAt: null,
      finishedAt: null,
      seen: 0,
      queued: 0,
    });
    expect((await t.entries()).at(-1)).toEqual({
      action: 'webhook.redeliver',
      person_id: t.manager.userId,
      detail: { webhookId: t.webhook.id, redeliveryId: requested.id, ...lately },
    });
    await t.cancel(requested.id);
    const count = (await t.entries()).length;

    const reader = await t.make.member({ orgId: t.organizationId, permissions: ['org.read'] });
    const at = hoursAgo(2).toISOString();
    const old = hoursAgo(30 * 24 + 1).toISOString();
    const rejections: [selection: Selection, reason: string, by?: Authority][] = [
      [lately, 'may_not_manage_webhooks', { personId: reader.userId }],
      [{ from: at, to: at }, 'empty_range'],
      [{ from: old, to: at }, 'event_too_old'],
      [{ failedSince: old }, 'event_too_old'],
    ];
    for (const [selection, reason, by] of rejections)
      await expect(t.request(selection, by)).rejects.toMatchObject({ reason });
    await t.pause(t.webhook.id);
    await expect(t.request(lately)).rejects.toMatchObject({ reason: 'webhook_not_active' });
    await t.remove(t.webhook.id);
    await expect(t.request(lately)).rejects.toMatchObject({ reason: 'webhook_deleted' });
    expect(await t.entries()).toHaveLength(count + 2); // of the pause and the deletion
    expect(await t.rows('select from redelivery')).toHaveLength(1);
  });

  it('succeeds once for ten parallel requests; the others name the running one, and another webhook’s does not block it', async () => {
    const t = await setupRedeliveries();
    const requested = await Promise.allSettled(Array.from({ length: 10 }, () => t.request(lately)));
    const [first] = requested.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const rejected = requested.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(rejected).toHaveLength(9);
    for (const rejection of rejected) {
      expect(rejection).toMatchObject({ reason: 'redelivery_under_way' });
      expect(rejection.message).toContain(first?.id);
    }
    expect((await t.entries()).filter(({ action }) => action === 'webhook.redeliver')).toHaveLength(1);
    const other = await t.make.webhook({ orgId: t.organizationId });
    await requestRedelivery(t.owner, { ...t.of(other.id), selection: lately });
    await t.cancel(first?.id ?? '');
    await t.request(lately);
  });
});

describe('listing redeliveries', () => {
  it('shows the newest first, page by page, of this webhook only', async () => {
    const t = await setupRedeliveries();
    const other = await t.make.webhook({ orgId: t.organizationId });
    await requestRedelivery(t.owner, { ...t.of(other.id), selection: lately });
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { id } = await t.request(lately);
      await t.cancel(id);
      ids.unshift(id);
    }
    const list = async (atMost: number, before: string | null) =>
      (await listRedeliveries(t.owner, { ...t.of(t.webhook.id), atMost, before })).map(({ id }) => id);
    expect(await list(2, null)).toEqual(ids.slice(0, 2));
    expect(await list(2, ids[1] ?? '')).toEqual(ids.slice(2));
  });

  it('or cancelling them is rejected without the permission, and another organization’s are not found', async () => {
    const t = await setupRedeliveries();
    const { id } = await t.request(lately);
    const stranger = await t.make.member({ permissions: ['org.webhooks.manage'] });
    const reader = await t.make.member({ orgId: t.organizationId, permissions: ['org.read'] });
    const db = t.owner;
    for (const personId of [stranger.userId, reader.userId]) {
      const by = { personId };
      const rejected = { reason: 'may_not_manage_webhooks' };
      await expect(t.find(id, by)).rejects.toMatchObject(rejected);
      await expect(t.cancel(id, by)).rejects.toMatchObject(rejected);
      const listing = listRedeliveries(db, { ...t.of(t.webhook.id, by), atMost: 1, before: null });
      await expect(listing).rejects.toMatchObject(rejected);
    }
    const theirs = { organizationId: stranger.orgId, redeliveryId: id, by: { personId: stranger.userId } };
    expect(await findRedelivery(db, theirs)).toBeNull();
    await expect(cancelRedelivery(db, theirs)).rejects.toMatchObject({ reason: 'no_such_redelivery' });
    await expect(t.cancel(nowhere)).rejects.toMatchObject({ reason: 'no_such_redelivery' });
    expect(await t.find(id)).toMatchObject({ state: 'requested', cancelRequestedAt: null });
  });
});

describe('cancelling a redelivery', () => {
  it('ends one that no worker has begun at once, with both audit entries, and repeating it writes none', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    const { id } = await t.request(lately);
    expect(await t.cancel(id)).toMatchObject({ state: 'cancelled', cancelRequestedAt: expect.stringMatching(/Z$/) });
    expect((await t.entries()).slice(-2)).toEqual([
      {
        action: 'webhook.cancel_redelivery',
        person_id: t.manager.userId,
        detail: { webhookId: t.webhook.id, redeliveryId: id },
      },
      {
        action: 'webhook.redelivered',
        person_id: null,
        detail: {
          webhookId: t.webhook.id,
          redeliveryId: id,
          state: 'cancelled',
          seen: 0,
          queued: 0,
        },
      },
    ]);
    const count = (await t.entries()).length;
    expect(await t.cancel(id)).toMatchObject({ state: 'cancelled' });
    expect(await t.entries()).toHaveLength(count);
    expect(await redeliverPage(t.owner)).toBe(false);
  });

  it('ends a running one before its next page, and keeps what was sent', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    await t.failed(2);
    const { id } = await t.request(lately);
    await t.page(1);
    expect(await t.cancel(id)).toMatchObject({ state: 'running', queued: 1, finishedAt: null });
    await t.page(1);
    expect(await t.find(id)).toMatchObject({ state: 'cancelled', seen: 1, queued: 1 });
    expect(await t.rows('select state from delivery order by state')).toEqual([
      { state: 'exhausted' },
      { state: 'queued' },
    ]);
    expect((await readLedger(t.owner)).difference).toBe(0);
  });
});

describe('a page', () => {
  it('is carried out once by three workers at once', async () => {
    const t = await setupRedeliveries();
    for (const hours of [5, 4, 3]) await t.failed(hours);
    await t.request(lately);
    const done = await Promise.all([1, 2, 3].map(() => redeliverPage(t.owner)));
    expect(done.filter((one) => one)).toHaveLength(1);
    expect(await t.rows(counts)).toEqual([{ state: 'done', seen: 3, queued: 3, finished: true }]);
  });

  it('of a worker that dies is undone, and another worker carries it out', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    const { id } = await t.request(lately);
    await t.rows(`create function die() returns trigger language plpgsql as $$ begin
      perform pg_terminate_backend(pg_backend_pid()); return null; end $$`);
    await t.rows('create trigger die after update on redelivery for each row execute function die()');
    await expect(redeliverPage(t.owner)).rejects.toThrow();
    await t.rows('drop trigger die on redelivery');
    expect(await t.rows('select state from delivery')).toEqual([{ state: 'exhausted' }]);
    await t.page();
    expect(await t.find(id)).toMatchObject({ state: 'done', seen: 1, queued: 1 });
    expect((await t.entries()).at(-1)).toEqual({
      action: 'webhook.redelivered',
      person_id: null,
      detail: { webhookId: t.webhook.id, redeliveryId: id, state: 'done', seen: 1, queued: 1 },
    });
  });

  // A page that fails becomes due later, or it would come first each time.
  it('holds back no other one while its page fails', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    const failing = await t.request(lately);
    await t.rows(`update redelivery set range_from = '9999-12-31', range_to = '10001-01-01', failed_since = null,
      due_at = now() - interval '1 hour'`); // a page of years that no event's id can name fails
    await expect(redeliverPage(t.owner)).rejects.toThrow();
    const webhook = await t.make.webhook({ orgId: t.organizationId });
    await t.make.delivery({ ...exhausted(webhook), createdAt: hoursAgo(3), settledAt: hoursAgo(3) });
    const by: Authority = { personId: t.manager.userId };
    const other = await requestRedelivery(t.owner, { ...t.of(webhook.id, by), selection: lately });
    for (let pages = 0; pages < 200 && (await t.find(other.id))?.state !== 'done'; pages += 1)
      await redeliverPage(t.owner).catch(() => {});
    expect(await t.find(other.id)).toMatchObject({ state: 'done' });
    expect(await t.find(failing.id)).toMatchObject({ state: 'requested' });
  });

  it('does not wait for a clock that was set back', async () => {
    const t = await setupRedeliveries();
    await t.request(lately);
    await t.rows(`update redelivery set due_at = now() + interval '1 hour'`);
    expect(await redeliverPage(t.owner)).toBe(true);
  });

  it('contains no event that happened after the request, so that the redelivery of a busy webhook ends', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    const { id } = await t.request(lately);
    await t.make.delivery({ ...exhausted(t.webhook), createdAt: hoursAgo(-0.1), settledAt: hoursAgo(-0.1) });
    await t.page();
    expect(await t.find(id)).toMatchObject({ state: 'done', seen: 1, queued: 1 });
  });

  it('of a webhook that was paused or deleted meanwhile ends the redelivery with that reason and an audit entry', async () => {
    for (const [end, reason] of [
      ['pause', 'webhook_paused'],
      ['remove', 'webhook_deleted'],
    ] as const) {
      const t = await setupRedeliveries();
      await t.failed(3);
      await t.failed(2);
      const { id } = await t.request(lately);
      await t.page(1);
      await t[end](t.webhook.id);
      await t.page(1);
      expect(await t.find(id)).toMatchObject({ state: 'ended', endReason: reason, finishedAt: expect.any(String) });
      expect((await t.entries()).at(-1)).toMatchObject({
        action: 'webhook.redelivered',
        detail: { redeliveryId: id, state: 'ended', reason, queued: 1 },
      });
      expect((await readLedger(t.owner)).difference).toBe(0);
    }
  });
});

describe('the rights', () => {
  it('of the console are to request, list and cancel, and of the worker to carry out', async () => {
    const t = await setupRedeliveries();
    await t.failed(3);
    const [console, worker] = await Promise.all(
      [t.database.urls.console, t.database.urls.worker].map((url) =>
        openDatabase({ server: parsePostgresUrl(url), applicationName: 'test', poolMax: 1 }),
      ),
    );
    if (console === undefined || worker === undefined) throw new Error('no database');
    onTestFinished(async () => void (await Promise.all([console.close(), worker.close()])));
    const by = { personId: t.manager.userId };
    const first = await requestRedelivery(console, { ...t.of(t.webhook.id, by), selection: lately });
    const one = { organizationId: t.organizationId, redeliveryId: first.id, by };
    expect(await findRedelivery(console, one)).toMatchObject({ state: 'requested' });
    expect(await cancelRedelivery(console, one)).toMatchObject({ state: 'cancelled' });
    const { id } = await t.request(lately);
    expect(await redeliverPage(worker)).toBe(true);
    expect(await t.find(id)).toMatchObject({ state: 'done', queued: 1 });
    for (const [login, statement] of [
      [console, 'update redelivery set queued = 7'],
      [console, 'delete from redelivery'],
      [worker, 'delete from redelivery'],
    ] as const) {
      await expect(login.pool.query(statement)).rejects.toMatchObject({ code: '42501' });
    }
  });
});

type Webhook = Awaited<ReturnType<Awaited<ReturnType<typeof setupWebhooks>>['make']['webhook']>>;
const exhausted = (webhook: Webhook) =>
  ({ webhook, state: 'exhausted', attempts: [{ status: 500, endsSchedule: true }] }) satisfies object as {
    webhook: Webhook;
    state: 'exhausted';
    attempts: { status: number; endsSchedule: boolean }[];
  };

async function setupRedeliveries() {
  const t = await setupWebhooks();
  const webhook = await t.make.webhook({ orgId: t.organizationId });
  const db = t.owner;
  const byManager: Authority = { personId: t.manager.userId };
  const of = (redeliveryId: string, by: Authority = byManager) => ({
    organizationId: t.organizationId,
    redeliveryId,
    by,
  });
  return {
    ...t,
    webhook,
    failed: (hours: number) =>
      t.make.delivery({ ...exhausted(webhook), createdAt: hoursAgo(hours), settledAt: hoursAgo(hours) }),
    request: (selection: Selection, by: Authority = byManager) =>
      requestRedelivery(db, { ...t.of(webhook.id, by), selection }),
    cancel: (redeliveryId: string, by?: Authority) => cancelRedelivery(db, of(redeliveryId, by)),
    find: (redeliveryId: string, by?: Authority) => findRedelivery(db, of(redeliveryId, by)),
    /** Carries out the next page, as if it was due. */
    page: async (sendAtMost = 100) => {
      await t.rows('update redelivery set due_at = now()');
      expect(await redeliverPage(t.owner, { sendAtMost })).toBe(true);
    },
  };
}
