/**
 * Creating, changing and showing webhooks and rotating their secrets: permissions, errors, and an
 * audit entry for each change.
 */
import { describe, expect, it } from 'vitest';
import { unsealSecret } from '#domain/webhooks/seal.ts';
import { isSecret } from '#domain/webhooks/secret.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { daySeconds, nowhere, setupWebhooks } from './subscriptions.ts';

describe('every action on webhooks', () => {
  it('is rejected for members without the permission, former members, and members of other organizations', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    const eventId = await t.make.delivery({ webhook: { id, orgId: t.organizationId, secret: '' } });
    const reader = await t.make.member({ orgId: t.organizationId, permissions: ['org.read', 'org.keys.manage'] });
    const gone = await t.make.member({ orgId: t.organizationId, status: 'left' });
    const stranger = await t.make.member();
    for (const { userId: personId } of [reader, gone, stranger]) {
      const by = { personId };
      const rejected = { reason: 'may_not_manage_webhooks' };
      await expect(t.create({ by })).rejects.toMatchObject(rejected);
      await expect(t.change(id, { by, description: 'x' })).rejects.toMatchObject(rejected);
      await expect(t.rotate(id, 0, by)).rejects.toMatchObject(rejected);
      await expect(t.pause(id, by)).rejects.toMatchObject(rejected);
      await expect(t.resume(id, by)).rejects.toMatchObject(rejected);
      await expect(t.remove(id, by)).rejects.toMatchObject(rejected);
      await expect(t.list(by)).rejects.toMatchObject(rejected);
      await expect(t.show(id, by)).rejects.toMatchObject(rejected);
      await expect(t.deliveries(id, null, by)).rejects.toMatchObject(rejected);
      await expect(t.delivery(id, eventId, by)).rejects.toMatchObject(rejected);
      await expect(t.redeliver(id, eventId, by)).rejects.toMatchObject(rejected);
    }
    expect((await t.entries()).map(({ action }) => action)).toEqual(['webhook.create']);
  });

  it('is recorded with the caller’s address, and an operator’s without one', async () => {
    const t = await setupWebhooks();
    const by = { personId: t.manager.userId, address: '203.0.113.9' };
    const { id } = await t.create({ by });
    await t.make.delivery({ webhook: { id, orgId: t.organizationId, secret: '' } });
    await t.change(id, { by, description: 'x' });
    await t.rotate(id, 0, by);
    await t.pause(id, by);
    await t.resume(id, 'orgctl');
    await t.remove(id, by);
    const entries = await t.rows(
      `select action, host(address) as address from audit_entry where action <> 'delivery.cancel' order by at, id`,
    );
    expect(entries).toEqual([
      ...['create', 'change', 'rotate_secret', 'pause'].map((action) => ({
        action: `webhook.${action}`,
        address: '203.0.113.9',
      })),
      { action: 'webhook.resume', address: null },
      { action: 'webhook.delete', address: '203.0.113.9' },
    ]);
    expect(await t.rows(`select host(address) as address from audit_entry where action = 'delivery.cancel'`)).toEqual([
      { address: '203.0.113.9' },
    ]);
  });

  it('is rejected for another organization’s webhook like for an unknown one', async () => {
    const t = await setupWebhooks();
    const foreign = await t.make.webhook();
    for (const id of [foreign.id, nowhere]) {
      const rejected = { reason: 'no_such_webhook' };
      await expect(t.change(id, { description: 'x' })).rejects.toMatchObject(rejected);
      await expect(t.rotate(id)).rejects.toMatchObject(rejected);
      await expect(t.pause(id)).rejects.toMatchObject(rejected);
      await expect(t.resume(id)).rejects.toMatchObject(rejected);
      await expect(t.remove(id)).rejects.toMatchObject(rejected);
      await expect(t.show(id)).rejects.toMatchObject(rejected);
      await expect(t.deliveries(id)).rejects.toMatchObject(rejected);
      await expect(t.delivery(id, nowhere)).rejects.toMatchObject(rejected);
      await expect(t.redeliver(id, nowhere)).rejects.toMatchObject(rejected);
    }
    expect((await t.list()).length).toBe(0);
  });

  it('is open to operators, and then records no person', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create({ by: 'orgctl' });
    await t.rotate(id, 0, 'orgctl');
    await t.pause(id, 'orgctl');
    await t.resume(id, 'orgctl');
    await t.remove(id, 'orgctl');
    const entries = await t.entries();
    expect(entries.map(({ action }) => action)).toEqual([
      'webhook.create',
      'webhook.rotate_secret',
      'webhook.pause',
      'webhook.resume',
      'webhook.delete',
    ]);
    expect(new Set(entries.map(({ person_id }) => person_id))).toEqual(new Set([null]));
  });

  it('leaves no secret and no URL path in the audit log, and no secret outside its sealed row', async () => {
    const t = await setupWebhooks();
    const { id, secret } = await t.create();
    const rotated = await t.rotate(id);
    await t.change(id, { url: 'https://other.example.com/path?token=t0psecret' });
    const log = JSON.stringify(await t.entries());
    expect(log).toContain('other.example.com');
    expect(log).not.toMatch(/whsec_|t0psecret|path/);
    const shown = JSON.stringify([await t.show(id), await t.list()]);
    expect(shown).not.toContain('whsec_');
    const stored = await t.rows("select encode(sealed, 'escape') as e, sealed from webhook_secret");
    for (const value of [secret, rotated.secret]) {
      expect(JSON.stringify(stored)).not.toContain(value.slice('whsec_'.length));
      expect(shown).not.toContain(value.slice('whsec_'.length));
    }
  });
});

describe('adding a webhook', () => {
  it('returns its id and signing secret, which the database stores sealed for this row', async () => {
    const t = await setupWebhooks();
    const { id, secret } = await t.create({ eventTypes: ['seat.ended', 'client.started', 'seat.ended'] });
    expect(isSecret(secret)).toBe(true);
    const [row] = await t.rows<{ sealed: Buffer }>('select sealed from webhook_secret where webhook_id = $1', [id]);
    const owner = { organizationId: t.organizationId, webhookId: id };
    expect(unsealSecret(row?.sealed ?? Buffer.alloc(0), owner, testSealingKeys)).toBe(secret);
    expect(await t.show(id)).toMatchObject({
      id,
      organizationId: t.organizationId,
      description: 'ours',
      state: 'active',
      suspendedReason: null,
      eventTypes: ['client.started', 'seat.ended'],
      failingSince: null,
      concurrency: 10,
      deliveries: { waiting: 0, held: 0, delivered: 0, exhausted: 0, cancelled: 0 },
      secrets: [{ validUntil: null }],
    });
    expect(await t.entries()).toEqual([
      {
        action: 'webhook.create',
        person_id: t.manager.userId,
        detail: { webhookId: id, host: 'hooks.example.com', eventTypes: ['client.started', 'seat.ended'] },
      },
    ]);
  });

  it('is rejected for an unsuitable URL with the reason, and writes nothing', async () => {
    const t = await setupWebhooks();
    // The allow list of the tests permits the first address; the other rules for URLs apply.
    await t.create({ url: 'http://127.0.0.1:9000/in' });
    for (const url of [
      'https://10.0.0.1/',
      'https://user:secret@hooks.example.com',
      `https://a.example.com/${'x'.repeat(2_000)}`,
    ])
      await expect(t.create({ url })).rejects.toMatchObject({ reason: 'url_invalid' });
    await expect(t.create({ url: 'ftp://hooks.example.com' })).rejects.toMatchObject({
      reason: 'url_invalid',
      message: expect.stringContaining('https://'),
    });
    expect(await t.rows('select from webhook')).toHaveLength(1);
    expect(await t.entries()).toHaveLength(1);
  });

  it('is rejected without event types, with an unknown one, with a long description, and without an organization', async () => {
    const t = await setupWebhooks();
    await expect(t.create({ eventTypes: [] })).rejects.toMatchObject({ reason: 'no_event_types' });
    await expect(t.create({ eventTypes: ['client.started', 'client.*'] })).rejects.toMatchObject({
      reason: 'unknown_event_type',
      message: expect.stringContaining('client.*'),
    });
    await expect(t.create({ description: 'x'.repeat(501) })).rejects.toMatchObject({ reason: 'description_too_long' });
    await expect(t.create({ organizationId: nowhere, by: 'orgctl' })).rejects.toMatchObject({
      reason: 'no_such_organization',
    });
    await t.create({ description: 'x'.repeat(500) });
  });

  it('stops at 20 webhooks that are not deleted, also in parallel', async () => {
    const t = await setupWebhooks();
    const made = await Promise.allSettled(Array.from({ length: 50 }, () => t.create()));
    const rejections = made.filter((one) => one.status === 'rejected').map((one) => one.reason.reason);
    expect(rejections).toEqual(Array.from({ length: 30 }, () => 'too_many_webhooks'));
    const numbers = await t.rows<{ number: number }>('select number from webhook order by number');
    expect(numbers.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));

    const [first] = await t.list();
    await t.pause(first?.id ?? '');
    await expect(t.create()).rejects.toMatchObject({ reason: 'too_many_webhooks' });
    await t.remove(first?.id ?? '');
    await t.create();
    await expect(t.create()).rejects.toMatchObject({ reason: 'too_many_webhooks' });
    // Another organization has its own limit of 20.
    await t.make.webhook();
  });
});

describe('changing a webhook', () => {
  it('changes the given fields only, and resets the failures for a new URL only', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    await t.rows('update receiver set failing_since = now()');
    await t.change(id, { description: 'theirs', eventTypes: ['seat.given', 'client.ended'] });
    expect(await t.show(id)).toMatchObject({
      description: 'theirs',
      eventTypes: ['client.ended', 'seat.given'],
      url: 'https://hooks.example.com/in?token=t0psecret',
      failingSince: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
    });
    await t.change(id, { url: 'https://hooks.example.com/in?token=t0psecret' });
    expect((await t.show(id)).failingSince).not.toBeNull();
    await t.change(id, { url: 'https://new.example.com' });
    expect(await t.show(id)).toMatchObject({
      url: 'https://new.example.com',
      failingSince: null,
      description: 'theirs',
    });
    expect((await t.entries()).slice(1).map(({ detail }) => detail)).toEqual([
      { webhookId: id, changed: ['eventTypes', 'description'], eventTypes: ['client.ended', 'seat.given'] },
      { webhookId: id, changed: ['url'], host: 'hooks.example.com' },
      { webhookId: id, changed: ['url'], host: 'new.example.com' },
    ]);
  });

  it('is rejected like adding one, without a field, and for a deleted webhook', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    await expect(t.change(id, {})).rejects.toMatchObject({ reason: 'nothing_to_change' });
    await expect(t.change(id, { url: 'ftp://x' })).rejects.toMatchObject({ reason: 'url_invalid' });
    await expect(t.change(id, { eventTypes: [] })).rejects.toMatchObject({ reason: 'no_event_types' });
    await expect(t.change(id, { eventTypes: ['x'] })).rejects.toMatchObject({ reason: 'unknown_event_type' });
    await expect(t.change(id, { description: 'x'.repeat(501) })).rejects.toMatchObject({
      reason: 'description_too_long',
    });
    await t.remove(id);
    await expect(t.change(id, { description: 'x' })).rejects.toMatchObject({ reason: 'webhook_deleted' });
    expect((await t.entries()).map(({ action }) => action)).toEqual(['webhook.create', 'webhook.delete']);
  });

  it('sets and removes a bound of 1 to 100 posts a second; the log has the old and the new one', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create({ postsPerSecond: 100 });
    for (const postsPerSecond of [1, null]) {
      await t.change(id, { postsPerSecond });
      expect(await t.show(id)).toMatchObject({ postsPerSecond });
    }
    for (const postsPerSecond of [0, 101, 1.5, Number.NaN]) {
      const rejected = { reason: 'posts_per_second_out_of_range' };
      await expect(t.change(id, { postsPerSecond })).rejects.toMatchObject(rejected);
      await expect(t.create({ postsPerSecond })).rejects.toMatchObject(rejected);
    }
    expect((await t.entries()).map(({ detail }) => detail.postsPerSecond)).toEqual([
      100,
      { from: 100, to: 1 },
      { from: 1, to: null },
    ]);
  });

  it('applies to later events: an event goes only where its type was subscribed when it happened', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create({ eventTypes: ['seat.given'] });
    const professional = await t.make.member({ orgId: t.organizationId });
    await t.make.grant({ professional });
    await t.change(id, { eventTypes: ['client.started'] });
    const grant = await t.make.grant({ professional });
    const seen = await t.deliveries(id);
    expect(seen.map(({ type, state }) => ({ type, state }))).toEqual([{ type: 'client.started', state: 'waiting' }]);
    const [event] = await t.rows<{ body: string }>('select body from event where id = $1', [seen[0]?.eventId]);
    expect(event?.body).toContain(grant.id);
  });
});

describe('rotating a secret', () => {
  /** Whole seconds until each secret ends, newest first; null for the newest. */
  const lives = async (t: Awaited<ReturnType<typeof setupWebhooks>>, id: string) =>
    (await t.show(id)).secrets.map(({ validUntil }) =>
      validUntil === null ? null : Math.round((Date.parse(validUntil) - Date.now()) / 10_000) * 10,
    );

  it('keeps the old one signing beside the new one for 24 hours, or for the given overlap', async () => {
    const t = await setupWebhooks();
    const { id, secret } = await t.create();
    const rotated = await t.rotate(id);
    expect(rotated.id).toBe(id);
    expect(isSecret(rotated.secret) && rotated.secret !== secret).toBe(true);
    expect(Date.parse(rotated.previousValidUntil) - Date.now()).toBeGreaterThan((daySeconds - 60) * 1000);
    expect(await lives(t, id)).toEqual([null, daySeconds]);
    await t.rotate(id, 7 * daySeconds);
    expect(await lives(t, id)).toEqual([null, 7 * daySeconds, daySeconds]);
    expect((await t.entries()).at(-1)).toMatchObject({
      action: 'webhook.rotate_secret',
      detail: { webhookId: id, overlapSeconds: 7 * daySeconds },
    });
  });

  it('never extends an older secret beyond the replaced one, and erases all others without an overlap', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    await t.rotate(id, 7 * daySeconds);
    await t.rotate(id, 3_600);
    expect(await lives(t, id)).toEqual([null, 3_600, 3_600]);
    const { secret } = await t.rotate(id, 0);
    const rows = await t.rows<{ sealed: Buffer }>('select sealed from webhook_secret');
    expect(rows).toHaveLength(1);
    const owner = { organizationId: t.organizationId, webhookId: id };
    expect(unsealSecret(rows[0]?.sealed ?? Buffer.alloc(0), owner, testSealingKeys)).toBe(secret);
  });

  it('is rejected for an overlap below 0 or above 7 days, with five secrets signing, and for a deleted webhook', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    for (const seconds of [7 * daySeconds + 1, -1, Number.NaN])
      await expect(t.rotate(id, seconds)).rejects.toMatchObject({ reason: 'overlap_out_of_range' });
    for (let rotation = 1; rotation <= 4; rotation += 1) await t.rotate(id, daySeconds);
    await expect(t.rotate(id, 3_600)).rejects.toMatchObject({ reason: 'too_many_secrets' });
    expect(await lives(t, id)).toEqual([null, ...Array.from({ length: 4 }, () => daySeconds)]);
    await t.rotate(id, 0);
    await t.remove(id);
    await expect(t.rotate(id)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });

  it('by two people at once leaves one newest secret', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    await Promise.all([t.rotate(id), t.rotate(id), t.rotate(id)]);
    expect((await lives(t, id)).filter((life) => life === null)).toHaveLength(1);
  });
});
