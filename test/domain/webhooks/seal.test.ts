import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reseal } from '#domain/encryption/envelope.ts';
import { type SealingKey, SecretNotUnsealedError, sealSecret, secretRow, unsealSecret } from '#domain/webhooks/seal.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';

const key = (version: number): SealingKey => ({ version, secret: randomBytes(32) });
const owner = { organizationId: randomUUID(), webhookId: randomUUID() };

const rejection = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    if (error instanceof SecretNotUnsealedError) return error;
    throw error;
  }
  throw new Error('it opened');
};

describe('a sealed secret', () => {
  it('can be unsealed for its own webhook, in any notation of the ids', () => {
    const keys = [key(1)] as const;
    const secret = generateSecret();
    const sealed = sealSecret(secret, owner, keys);
    expect(unsealSecret(sealed, owner, keys)).toBe(secret);
    const shouted = { organizationId: owner.organizationId.toUpperCase(), webhookId: owner.webhookId.toUpperCase() };
    expect(unsealSecret(sealed, shouted, keys)).toBe(secret);
  });

  it('keeps its documented form: format, key version, nonce, secret, tag', () => {
    const sealed = sealSecret(generateSecret(), owner, [key(513)], (size) => Buffer.alloc(size, 7));
    expect(sealed.subarray(0, 15).toString('hex')).toBe(`010201${'07'.repeat(12)}`);
    expect(sealed.length).toBe(3 + 12 + 38 + 16);
  });

  it('does not contain the secret in readable form, and never has the same bytes twice', () => {
    const keys = [key(1)] as const;
    const secret = generateSecret();
    const [first, second] = [sealSecret(secret, owner, keys), sealSecret(secret, owner, keys)];
    expect(first.includes(secret.slice(6, 14))).toBe(false);
    expect(first.equals(second)).toBe(false);
  });

  it('cannot be unsealed after any bit of it changed, or after it was cut', () => {
    const keys = [key(0)] as const;
    const sealed = sealSecret(generateSecret(), owner, keys);
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.nat(7), (at, bit) => {
        const changed = Buffer.from(sealed);
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
        expect(rejection(() => unsealSecret(changed, owner, keys))).toBeInstanceOf(SecretNotUnsealedError);
        expect(rejection(() => unsealSecret(sealed.subarray(0, at), owner, keys))).toBeInstanceOf(
          SecretNotUnsealedError,
        );
      }),
    );
  });

  it('cannot be unsealed for another webhook or organization, nor with another key of the same version', () => {
    const keys = [key(1)] as const;
    const sealed = sealSecret(generateSecret(), owner, keys);
    const reasons = [
      rejection(() => unsealSecret(sealed, { ...owner, webhookId: randomUUID() }, keys)),
      rejection(() => unsealSecret(sealed, { ...owner, organizationId: randomUUID() }, keys)),
      rejection(() => unsealSecret(sealed, owner, [key(1)])),
    ].map((error) => error.reason);
    expect(reasons).toEqual(['not_authentic', 'not_authentic', 'not_authentic']);
  });

  it('names the missing key version, and where to add it', () => {
    const error = rejection(() => unsealSecret(sealSecret(generateSecret(), owner, [key(7)]), owner, [key(8)]));
    expect(error.reason).toBe('key_missing');
    expect(error.message).toContain('version 7');
    expect(error.message).toContain('WEBHOOK_SECRET_KEYS');
  });
});

describe('the rotation of the sealing key', () => {
  it('unseals old rows meanwhile, reseals each once, and then no longer needs the old key', () => {
    const [oldKey, newKey] = [key(1), key(2)];
    const secret = generateSecret();
    const sealed = sealSecret(secret, owner, [oldKey]);

    expect(unsealSecret(sealed, owner, [newKey, oldKey])).toBe(secret);
    const resealed = reseal(sealed, secretRow(owner), [newKey, oldKey]);

    if (!resealed) throw new Error('nothing was resealed');
    expect(unsealSecret(resealed, owner, [newKey])).toBe(secret);
    expect(reseal(resealed, secretRow(owner), [newKey, oldKey])).toBeNull();
  });
});

describe('WEBHOOK_SECRET_KEYS', () => {
  const encoded = randomBytes(32).toString('base64');

  it('is a list of version:base64 parts, newest first', () => {
    const keys = webhookSecretKeys.parse(`2:${encoded}, 1:${randomBytes(32).toString('base64')}`);
    expect(keys.map(({ version, secret }) => [version, secret.length])).toEqual([
      [2, 32],
      [1, 32],
    ]);
    expect(keys[0].secret.toString('base64')).toBe(encoded);
  });

  it.each([
    ['a key that is not 32 bytes', `1:${randomBytes(24).toString('base64')}`],
    ['a part without version', encoded],
    ['one version twice', `1:${encoded},1:${encoded}`],
    ['an empty part', `1:${encoded},`],
  ])('is rejected for %s, without a key in the message', (_, text) => {
    const rejected = webhookSecretKeys.safeParse(text, { reportInput: false });
    expect(rejected.success).toBe(false);
    expect(JSON.stringify(rejected.error?.issues)).not.toContain(text.slice(2, 20));
  });
});
