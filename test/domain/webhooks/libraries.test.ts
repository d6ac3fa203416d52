/**
 * Verifies the signatures of the published vector with the libraries that receivers use. A worker's
 * posts and other languages: test/signature-libraries.
 */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { vector } from './vector.ts';

type Verify = (body: Buffer, headers: Record<string, string>, secret: string) => unknown;

const libraries: [string, Verify][] = [
  [
    'stripe',
    (body, headers, secret) => Stripe.webhooks.constructEvent(body, headers['Service-Signature'] ?? '', secret),
  ],
  ['standardwebhooks', (body, headers, secret) => new StandardWebhook(secret).verify(body, headers)],
  ['svix', (body, headers, secret) => new SvixWebhook(secret).verify(body, headers)],
];

const { id, timestampSeconds } = vector;
const body = Buffer.from(vector.body);
const [older, newer] = [generateSecret(), generateSecret()];

beforeEach(() => vi.useFakeTimers({ now: timestampSeconds * 1000, toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

describe.each(libraries)('the %s library', (_, verify) => {
  const accepts = (signing: readonly string[], held: string, sentBody = body) => {
    try {
      verify(sentBody, signatureHeaders({ id, timestampSeconds, body, secrets: signing }), held);
      return true;
    } catch {
      return false;
    }
  };

  it('accepts the published test vector', () => {
    expect(accepts([vector.secret], vector.secret)).toBe(true);
  });

  it.each([
    ["in the middle of a secret's life", [older], { older: true, newer: false }],
    ['during a rotation', [newer, older], { older: true, newer: true }],
    ['after a rotation', [newer], { older: false, newer: true }],
  ] as const)('accepts a delivery for the holder of any signing secret: %s', (_when, signing, expected) => {
    expect({ older: accepts(signing, older), newer: accepts(signing, newer) }).toEqual(expected);
  });

  it('rejects a body that was serialized again', () => {
    expect(accepts([older], older, Buffer.from(JSON.stringify(JSON.parse(vector.body), null, 1)))).toBe(false);
  });

  it('accepts a timestamp up to 300 seconds old and rejects older ones', () => {
    vi.setSystemTime((timestampSeconds + 300) * 1000);
    expect(accepts([older], older)).toBe(true);
    vi.setSystemTime((timestampSeconds + 301) * 1000);
    expect(accepts([older], older)).toBe(false);
  });
});
