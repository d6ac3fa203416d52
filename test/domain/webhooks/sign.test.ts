import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generateSecret, isSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { otherSecret, vector } from './vector.ts';

const { secret, id, timestampSeconds, body } = vector;

describe('a new signing secret', () => {
  it('is whsec_ and the canonical base64 of 24 random bytes', () => {
    expect(generateSecret((size) => Buffer.alloc(size, 0xff))).toBe(`whsec_${'/'.repeat(32)}`);
    const secrets = Array.from({ length: 100 }, () => generateSecret());
    expect(secrets.every(isSecret)).toBe(true);
    expect(new Set(secrets).size).toBe(100);
  });
});

describe('the signature headers', () => {
  it('are those of the published test vector', () => {
    expect(signatureHeaders({ id, timestampSeconds, body, secrets: [secret] })).toEqual({
      'Service-Signature': `t=1767225600,${vector.service}`,
      'webhook-id': id,
      'webhook-timestamp': '1767225600',
      'webhook-signature': vector.standard,
    });
  });

  it('contain one signature for each secret, in the given order', () => {
    const alone = signatureHeaders({ id, timestampSeconds, body, secrets: [otherSecret] });
    const both = signatureHeaders({ id, timestampSeconds, body, secrets: [otherSecret, secret] });
    expect(both['Service-Signature']).toBe(`${alone['Service-Signature']},${vector.service}`);
    expect(both['webhook-signature']).toBe(`${alone['webhook-signature']} ${vector.standard}`);
  });

  it('are the same for the stored text and for its bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const of = (content: Buffer | string) =>
          signatureHeaders({ id, timestampSeconds, body: content, secrets: [secret] });
        expect(of(Buffer.from(text))).toEqual(of(text));
      }),
    );
  });

  it.each([
    ['no secret', { secrets: [] }],
    ['a secret cut short', { secrets: [secret.slice(0, -1)] }],
    ['a secret without its prefix', { secrets: [secret.slice('whsec_'.length)] }],
    ['a time in fractions of a second', { timestampSeconds: 1.5 }],
    ['an id with a dot', { id: 'a.1767225600' }],
    ['an id with a line end', { id: 'a\n' }],
  ])('are rejected for %s, without a secret in the message', (_, changed) => {
    const sign = () => signatureHeaders({ id, timestampSeconds, body, secrets: [secret], ...changed });
    expect(sign).toThrow(TypeError);
    expect(sign).not.toThrow(secret.slice(6, 20));
  });
});
