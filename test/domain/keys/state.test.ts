/** State rules of an API key, as its entity implements them. */
import { expect, it } from 'vitest';
import { ApiKey } from '#domain/keys/api-key.entity.ts';

const now = new Date('2026-05-05T12:00:00.000Z');
const earlier = new Date(now.getTime() - 1);
const later = new Date(now.getTime() + 1);
const keyWith = (fields: Partial<Pick<ApiKey, 'expiresAt' | 'revokedAt' | 'creatorLeftAt' | 'number'>>) =>
  Object.assign(new ApiKey(), { expiresAt: null, revokedAt: null, creatorLeftAt: null, number: 3, ...fields });

it('a key is valid before its expiry, and not at that moment', () => {
  expect(keyWith({}).stateAt(now)).toBe('valid');
  expect(keyWith({ expiresAt: later }).stateAt(now)).toBe('valid');
  expect(keyWith({ expiresAt: now }).stateAt(now)).toBe('expired');
});

it('causes of 401 take precedence over causes of 403', () => {
  expect(keyWith({ creatorLeftAt: earlier }).stateAt(now)).toBe('inactive');
  expect(keyWith({ creatorLeftAt: earlier, expiresAt: earlier }).stateAt(now)).toBe('expired');
  expect(keyWith({ creatorLeftAt: earlier, expiresAt: earlier, revokedAt: earlier }).stateAt(now)).toBe('revoked');
});

it('a revoked key has no number, and keeps the moment of its first revocation', () => {
  const key = keyWith({});
  key.revoke(earlier);
  key.revoke(now);
  expect(key).toMatchObject({ revokedAt: earlier, number: null });
});

it('an expiry can only become earlier', () => {
  const key = keyWith({});
  key.expireBy(later);
  expect(key.expiresAt).toBe(later);
  key.expireBy(now);
  expect(key.expiresAt).toBe(now);
  key.expireBy(later);
  expect(key.expiresAt).toBe(now);
});

it('only an expired key frees its number', () => {
  for (const [expiresAt, number] of [
    [null, 3],
    [later, 3],
    [now, null],
  ] as const) {
    const key = keyWith({ expiresAt });
    key.freeNumber(now);
    expect(key.number).toBe(number);
  }
});
