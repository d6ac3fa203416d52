/** Webhooks that an object of a Kubernetes cluster manages. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cancelDelivery, deleteWebhook, pauseWebhook, resumeWebhook } from '#delivery/requests.ts';
import type { ClusterObject } from '#domain/access/authority.ts';
import { openDatabase } from '#domain/open-database.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { detachWebhook, findManagedWebhook, getSealedValues } from '#domain/webhooks/managed.ts';
import { cancelRedelivery, countRedelivery, requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { requestSignatureCheck, requestTest } from '#domain/webhooks/test-event.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { testAllowList, testSealingKeys } from '#test/secrets.ts';
import { setupWebhooks } from './subscriptions.ts';

const settings = { allow: testAllowList, sealingKeys: testSealingKeys };

/** A webhook managed by `by`, changed over the operator's login. */
async function setupManaged() {
  const t = await setupWebhooks();
  const operator = await openDatabase({
    server: parsePostgresUrl(t.database.urls.operator),
    applicationName: 'operator',
    poolMax: 4,
  });
  onTestFinished(() => operator.close());
  const by: ClusterObject = { objectUid: randomUUID(), objectName: 'WebhookSubscription us/orders' };
  const input = {
    organizationId: t.organizationId,
    by,
    url: 'https://hooks.example.com/in',
    eventTypes: ['client.started'],
    description: '',
  };
  const db = operator;
  const created = await createWebhook(db, input, settings);
  const request = { organizationId: t.organizationId, webhookId: created.id, by };
  return { ...t, db, by, input, created, request };
}

describe('a webhook that a cluster object manages', () => {
  it('rejects every action of a member, names the object, and changes nothing', async () => {
    const t = await setupManaged();
    const webhook = { orgId: t.organizationId, ...t.created };
    const eventId = await t.make.delivery({ webhook });
    const selection = { failedSince: new Date(Date.now() - 3_600_000).toISOString() };
    const requested = { ...t.request, by: 'orgctl', selection } as const;
    const { id: redeliveryId } = await requestRedelivery(t.owner, requested);
    const of = t.of(t.created.id);
    const db = t.owner;
    const before = await t.rows('select * from webhook w join webhook_secret s on s.webhook_id = w.id');
    const actions: Record<string, () => Promise<unknown>> = {
      change: () => t.change(t.created.id, { url: 'https://other.example.com/' }),
      rotate: () => t.rotate(t.created.id),
      pause: () => t.pause(t.created.id),
      resume: () => t.resume(t.created.id),
      delete: () => t.remove(t.created.id),
      test: () => requestTest(db, of, null),
      verify: () => requestSignatureCheck(db, of),
      redeliver: () => t.redeliver(t.created.id, eventId),
      cancel: () => cancelDelivery(db, { ...of, eventId }),
      count: () => countRedelivery(db, { ...of, selection }),
      redeliverMany: () => requestRedelivery(db, { ...of, selection }),
      cancelMany: () => cancelRedelivery(db, { ...of, redeliveryId }),
      detach: () => detachWebhook(db, of),
    };
    for (const [action, act] of Object.entries(actions))
      await expect(act(), action).rejects.toMatchObject({
        reason: 'webhook_managed',
        message: 'This webhook is managed by WebhookSubscription us/orders in Kubernetes. Change it there.',
      });
    expect(await t.rows('select * from webhook w join webhook_secret s on s.webhook_id = w.id')).toEqual(before);
    expect(await t.show(t.created.id)).toMatchObject({ managedBy: 'WebhookSubscription us/orders' });
  });

  it('is changed over the operator’s login, with an entry in the audit log that names the object', async () => {
    const t = await setupManaged();
    await changeWebhook(t.db, { ...t.request, url: 'https://other.example.com/' }, testAllowList);
    await rotateSecret(t.db, { ...t.request, overlapSeconds: 60 }, testSealingKeys);
    await pauseWebhook(t.db, t.request);
    await resumeWebhook(t.db, t.request);
    await deleteWebhook(t.db, t.request);
    const entries = await t.entries();
    expect(entries.map(({ action }) => action)).toEqual(
      ['create', 'change', 'rotate_secret', 'pause', 'resume', 'delete'].map((action) => `webhook.${action}`),
    );
    for (const entry of entries)
      expect(entry).toMatchObject({ person_id: null, detail: { managedBy: 'WebhookSubscription us/orders' } });
    expect(await findManagedWebhook(t.db, t.by.objectUid)).toBeNull();
  });

  it('is found by its object after a restart, with the secret that was stored and not yet published', async () => {
    const t = await setupManaged();
    const found = await findManagedWebhook(t.db, t.by.objectUid);
    expect(found).toMatchObject({ id: t.created.id, state: 'active', url: t.input.url, lastDeliveredAt: null });
    const newest = await getSealedValues(t.db, t.request, testSealingKeys);
    expect(newest).toEqual({ id: found?.secretId, secret: t.created.secret, headers: [] });

    const settledAt = new Date('2026-03-01T10:00:00.000Z');
    const webhook = { orgId: t.organizationId, ...t.created };
    await t.make.delivery({ webhook, state: 'delivered', settledAt, attempts: [{ status: 204 }] });
    expect(await findManagedWebhook(t.db, t.by.objectUid)).toMatchObject({ lastDeliveredAt: settledAt.toISOString() });
  });

  it('exists once for its object, also when two operators create it at the same time', async () => {
    const t = await setupManaged();
    const by = { ...t.by, objectUid: randomUUID() };
    const input = { ...t.input, by, allowSameUrl: true };
    const tried = await Promise.allSettled([1, 2, 3].map(() => createWebhook(t.db, input, settings)));
    expect(tried.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await t.rows('select from webhook where managed_uid = $1', [by.objectUid])).toHaveLength(1);
  });

  it('takes a secret that the object brings, and rejects one of another form without repeating it', async () => {
    const t = await setupManaged();
    const secret = generateSecret();
    const { id } = await rotateSecret(t.db, { ...t.request, secret, overlapSeconds: 0 }, testSealingKeys);
    expect(id).toBe(t.created.id);
    expect(await getSealedValues(t.db, t.request, testSealingKeys)).toMatchObject({ secret });
    const rejected = await rotateSecret(t.db, { ...t.request, secret: 'whsec_t00short' }, testSealingKeys).catch(
      (error: unknown) => error,
    );
    expect(rejected).toMatchObject({ reason: 'secret_malformed' });
    expect(String(rejected)).not.toContain('t00short');
  });

  it('belongs to the members again once it is detached, with its URL, secret and deliveries', async () => {
    const t = await setupManaged();
    await detachWebhook(t.db, t.request);
    expect(await t.show(t.created.id)).toMatchObject({ managedBy: null, url: t.input.url, state: 'active' });
    expect((await t.entries()).at(-1)).toMatchObject({ action: 'webhook.detach', person_id: null });
    await expect(pauseWebhook(t.db, t.request)).rejects.toMatchObject({ reason: 'no_such_webhook' });
    await t.pause(t.created.id);
    expect(await t.show(t.created.id)).toMatchObject({ state: 'paused' });
  });

  it('is out of reach of every other object; an operator at the command line can change both', async () => {
    const t = await setupManaged();
    const other = { objectUid: randomUUID(), objectName: 'WebhookSubscription us/other' };
    const members = await t.create();
    await expect(pauseWebhook(t.db, { ...t.request, by: other })).rejects.toMatchObject({
      reason: 'webhook_not_managed',
    });
    // Its login cannot lock a webhook of the members, so it finds none.
    await expect(pauseWebhook(t.db, { ...t.request, webhookId: members.id })).rejects.toMatchObject({
      reason: 'no_such_webhook',
    });
    await t.pause(t.created.id, 'orgctl');
    expect(await t.show(t.created.id)).toMatchObject({ state: 'paused' });
    // For example because its object went while there was no Region.
    await detachWebhook(t.owner, t.of(t.created.id, 'orgctl'));
    expect(await t.show(t.created.id)).toMatchObject({ managedBy: null });
  });

  it('that is suspended is paused and resumed by its object', async () => {
    const t = await setupManaged();
    await t.rows(`update webhook set state = 'suspended', suspended_reason = 'failures' where id = $1`, [t.created.id]);
    await pauseWebhook(t.db, t.request);
    expect(await findManagedWebhook(t.db, t.by.objectUid)).toMatchObject({ state: 'paused' });
    await resumeWebhook(t.db, t.request);
    expect(await findManagedWebhook(t.db, t.by.objectUid)).toMatchObject({ state: 'active', suspendedReason: null });
  });
});
