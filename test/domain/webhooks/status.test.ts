/** The terms for the status of webhooks and deliveries. */
import { expect, it } from 'vitest';
import { deliveryStates } from '#domain/webhooks/deliveries.ts';
import { deliveryStatusOf, webhookStatusOf } from '#domain/webhooks/status.ts';

it('a webhook is Active, Failing, Paused by a person, Suspended by the service, or Deleted', () => {
  const since = new Date().toISOString();
  const words = [
    webhookStatusOf({ state: 'active', failingSince: null }),
    webhookStatusOf({ state: 'active', failingSince: since }),
    webhookStatusOf({ state: 'paused', failingSince: since }),
    webhookStatusOf({ state: 'suspended', failingSince: since }),
    webhookStatusOf({ state: 'deleted', failingSince: since }),
  ];
  expect(words).toEqual(['Active', 'Failing', 'Paused', 'Suspended', 'Deleted']);
});

it('a delivery is Pending, Delivered, Failed, Cancelled or Held; Retrying after an attempt, Delivering during one', () => {
  const words = deliveryStates.map((state) => deliveryStatusOf({ state, attempts: 0, isAttempting: false }));
  expect(words).toEqual(['Pending', 'Delivered', 'Failed', 'Cancelled', 'Held']);
  expect(deliveryStatusOf({ state: 'waiting', attempts: 2, isAttempting: false })).toBe('Retrying');
  expect(deliveryStatusOf({ state: 'waiting', attempts: 2, isAttempting: true })).toBe('Delivering');
  expect(deliveryStatusOf({ state: 'held', attempts: 2, isAttempting: false })).toBe('Held');
});
