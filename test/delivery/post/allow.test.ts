import { expect, it } from 'vitest';
import { getAllowList } from '#delivery/sender.ts';
import { checkAddress } from '#domain/webhooks/address/addresses.ts';
import { addressBlocks } from '#runtime/settings/types.ts';

const probe = '0198c0de-0000-7000-8000-000000000001';
const settings = {
  webhookAllow: addressBlocks.parse('10.9.0.0/16'),
  probeWebhook: { id: probe, allow: addressBlocks.parse('10.96.0.81') },
};
const reaches = (webhookId: string, address: string, from = settings) =>
  checkAddress(address, getAllowList(from, webhookId)).ok;

it('only the probe’s webhook reaches the probe’s address', () => {
  expect(reaches(probe, '10.96.0.81')).toBe(true);
  expect(reaches('0198c0de-0000-7000-8000-000000000002', '10.96.0.81')).toBe(false);
  expect(reaches(probe, '10.96.0.82')).toBe(false);
  expect(reaches(probe, '10.9.0.1')).toBe(false);
});

it('every other webhook reaches what WEBHOOK_ALLOW names, with or without a probe', () => {
  expect(reaches('another', '10.9.0.1')).toBe(true);
  expect(checkAddress('10.9.0.1', getAllowList({ ...settings, probeWebhook: null }, probe)).ok).toBe(true);
});
