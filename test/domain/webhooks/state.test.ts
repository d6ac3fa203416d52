/** State rules of webhooks, their secrets and redeliveries, as their entities implement them. */
import { expect, it } from 'vitest';
import { Redelivery } from '#domain/webhooks/redelivery.entity.ts';
import { Webhook, WebhookSecret } from '#domain/webhooks/webhook.entity.ts';

const now = new Date('2026-05-05T12:00:00.000Z');
const later = new Date(now.getTime() + 1);

function webhookWith(fields: Partial<Webhook> = {}): Webhook {
  const webhook = new Webhook();
  return Object.assign(webhook, {
    url: 'https://a.example',
    state: 'active',
    suspendedReason: null,
    number: 7,
    signatureResult: 'verified',
    signatureCheckedAt: now,
    ...fields,
  });
}

it('a webhook is paused once, and keeps its number', () => {
  const webhook = webhookWith();
  expect([webhook.pause(), webhook.pause()]).toEqual([true, false]);
  expect(webhook).toMatchObject({ state: 'paused', suspendedReason: null, number: 7 });
});

it('a paused webhook is still shown as suspended', () => {
  const webhook = webhookWith({ state: 'suspended', suspendedReason: 'failures' });
  expect([webhook.pause(), webhook.suspendedReason]).toEqual([false, 'failures']);
});

it('a webhook is resumed once', () => {
  const webhook = webhookWith({ state: 'suspended', suspendedReason: 'failures' });
  expect([webhook.resume(), webhook.resume()]).toEqual([true, false]);
  expect(webhook).toMatchObject({ state: 'active', suspendedReason: null });
});

it('a deleted webhook has no number, and is deleted once', () => {
  const webhook = webhookWith();
  expect([webhook.delete(), webhook.delete()]).toEqual([true, false]);
  expect(webhook).toMatchObject({ state: 'deleted', number: null });
});

it('a new URL clears the signature check; the same URL changes nothing', () => {
  const webhook = webhookWith();
  webhook.moveTo(webhook.url);
  expect(webhook).toMatchObject({ signatureResult: 'verified', signatureCheckedAt: now });
  webhook.moveTo('https://b.example');
  expect(webhook).toMatchObject({ signatureResult: null, signatureCheckedAt: null });
});

it('the lifetime of a secret is never extended', () => {
  const secret = Object.assign(new WebhookSecret(), { validUntil: null as Date | null });
  expect(secret.endBy(later)).toBe(later);
  expect(secret.endBy(now)).toBe(now);
  expect(secret.endBy(later)).toBe(now);
});

it('a redelivery can be cancelled once, while it is open', () => {
  for (const [state, can] of [
    ['requested', true],
    ['running', true],
    ['done', false],
    ['cancelled', false],
    ['ended', false],
  ] as const) {
    const redelivery = new Redelivery();
    redelivery.state = state;
    redelivery.cancelRequestedAt = null;
    expect([redelivery.requestCancel(), redelivery.requestCancel()]).toEqual([can, false]);
  }
});
