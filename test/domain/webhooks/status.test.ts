/** The terms for the status of webhooks and deliveries. */
import { expect, it } from 'vitest';
import { deliveryStates } from '#domain/webhooks/deliveries.ts';
import { getDeliveryStatus, getWebhookStatus } from '#domain/webhooks/status.ts';

it('a webhook is Active, Failing, Paused by a person, Suspended by the service, or Deleted', () => {
  const since = new Date().toISOString();
  const words = [
    getWebhookStatus({ state: 'active', failingSince: null }),
    getWebhookStatus({ state: 'active', failingSince: since }),
    getWebhookStatus({ state: 'paused', failingSince: since }),
    getWebhookStatus({ state: 'suspended', failingSince: since }),
    getWebhookStatus({ state: 'deleted', failingSince: since }),
  ];
  expect(words).toEqual(['Active', 'Failing', 'Paused', 'Suspended', 'Deleted']);
});

it('a delivery is Pending, Delivered, Failed, Cancelled or Held; Retrying after an attempt, Delivering during one', () => {
  const words = deliveryStates.map((state) => getDeliveryStatus({ state, attempts: 0, isAttempting: false }));
  expect(words).toEqual(['Pending', 'Delivered', 'Failed', 'Cancelled', 'Held']);
  expect(getDeliveryStatus({ state: 'waiting', attempts: 2, isAttempting: false })).toBe('Retrying');
  expect(getDeliveryStatus({ state: 'waiting', attempts: 2, isAttempting: true })).toBe('Delivering');
  expect(getDeliveryStatus({ state: 'held', attempts: 2, isAttempting: false })).toBe('Held');
});
