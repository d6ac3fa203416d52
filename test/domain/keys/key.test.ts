/** The format of a key, computed a second time here. */
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Region, regionCodes } from '#domain/contract/regions.ts';
import { checkKey, fingerprint, fingerprints, generateKey, keyHint } from '#domain/keys/key.ts';
import { testKeySecrets } from '#test/secrets.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const tagSecret = testKeySecrets.tagSecrets[0];
const pepper = testKeySecrets.peppers[0];
const region = fc.constantFrom<Region>(...regionCodes);
const letter = fc.constantFrom(...alphabet);

/** Returns bytes in big-endian base62 with a fixed number of characters. */
function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet.charAt(Number(rest % 62n)) + text;
  return text;
}

/** CRC-32 as in ISO 3309, bit by bit. */
function crc32(text: string): bigint {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return BigInt((crc ^ 0xffffffff) >>> 0);
}

/** Returns the key with this random part. */
function buildKey(code: Region, random: string, secret: Buffer): string {
  const body = `aln_${code}_${random}`;
  const mac = createHmac('sha256', secret).update(body).digest().subarray(0, 6);
  const tagged = body + base62(BigInt(`0x${mac.toString('hex')}`) % 62n ** 4n, 4);
  return tagged + base62(crc32(tagged), 6);
}

describe('an API key', () => {
  it.each([
    // Computed in another language with the secrets of test/support/secrets.ts.
    [
      'aln_us_0123456789ABCDEFGHIJKLMNOPQRSTzEdr1dIW9G',
      '2a3f7889739dc933ccc2e1cf7b679b2dccf18b9e10c880d0a7a15e7eabb4c607',
    ],
    [
      'aln_ca_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzznrEq3sRii9',
      '8e5716b1ccedb57a44947b476b52b101f8c5f29f5d7cb999774bf10a86303f74',
    ],
    [
      'aln_us_Qm7Zp0aLr3Xk9TyBv5NcW2dJf8HsGeSHNC1xxxRJ',
      'f5026e0a59bf2d1f75a3dd4813236e7dc591be358079e2a384d3ff28a5a42dfb',
    ],
  ])('%s is genuine and has its fixed fingerprint', (key, print) => {
    const code = key.slice(4, 6) as Region;
    expect(checkKey(key, code, [tagSecret])).toEqual({ ok: true });
    expect(buildKey(code, key.slice(7, 37), tagSecret)).toBe(key);
    expect(fingerprint(key, pepper).toString('hex')).toBe(print);
  });

  it('has a prefix, 30 random characters, a tag of 4 and a checksum of 6, and passes its own check', () => {
    fc.assert(
      fc.property(region, fc.uint8Array({ minLength: 16, maxLength: 64 }), (code, secretBytes) => {
        const secret = Buffer.from(secretBytes);
        const key = generateKey(code, secret);
        expect(key).toMatch(new RegExp(`^aln_${code}_[0-9A-Za-z]{40}$`));
        expect(key).toBe(buildKey(code, key.slice(7, 37), secret));
        expect(checkKey(key, code, [secret])).toEqual({ ok: true });
      }),
    );
  });

  it('is rejected by its checksum alone when any one character changes', () => {
    const key = generateKey('us', tagSecret);
    for (let at = 0; at < key.length; at += 1) {
      for (const other of `${alphabet}_-.`) {
        if (other === key[at]) continue;
        const changed = key.slice(0, at) + other + key.slice(at + 1);
        expect(checkKey(changed, 'us', [tagSecret]), `${other} at ${at}`).toEqual({ ok: false, reason: 'not_a_key' });
        const intact = crc32(changed.slice(0, -6)) === crc32(key.slice(0, -6)) && changed.endsWith(key.slice(-6));
        expect(intact).toBe(false);
      }
    }
  });

  it('is rejected when two neighboring characters are swapped', () => {
    fc.assert(
      fc.property(fc.nat({ max: 45 }), (at) => {
        const key = generateKey('us', tagSecret);
        const swapped = key.slice(0, at) + (key[at + 1] ?? '') + (key[at] ?? '') + key.slice(at + 2);
        expect(checkKey(swapped, 'us', [tagSecret]).ok).toBe(swapped === key);
      }),
    );
  });

  it('is rejected when its checksum is right and its tag is not', () => {
    fc.assert(
      fc.property(fc.array(letter, { minLength: 34, maxLength: 34 }), (letters) => {
        const tagged = `aln_us_${letters.join('')}`;
        const genuine = buildKey('us', letters.slice(0, 30).join(''), tagSecret);
        const forged = tagged + base62(crc32(tagged), 6);
        expect(checkKey(forged, 'us', [tagSecret]).ok).toBe(forged === genuine);
      }),
    );
  });

  it('is genuine under every listed tag secret, and under no other', () => {
    const [old, current] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const key = generateKey('us', old);
    expect(checkKey(key, 'us', [current, old]).ok).toBe(true);
    expect(checkKey(key, 'us', [current]).ok).toBe(false);
  });

  it('of the other region is recognized by its prefix, well-formed or not', () => {
    for (const text of [generateKey('ca', tagSecret), 'aln_ca_', 'aln_ca_nonsense'])
      expect(checkKey(text, 'us', [tagSecret])).toEqual({ ok: false, reason: 'other_region', region: 'ca' });
    expect(checkKey('aln_us_', 'ca', [tagSecret])).toEqual({ ok: false, reason: 'other_region', region: 'us' });
  });

  it('is checked without an exception for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => {
        expect(checkKey(text, 'us', [tagSecret]).ok).toBe(false);
      }),
    );
  });

  it('is unique, and uses every character about equally often', () => {
    const keys = Array.from({ length: 2_000 }, () => generateKey('us', tagSecret));
    expect(new Set(keys).size).toBe(keys.length);
    const seen = new Map<string, number>();
    for (const character of keys.map((key) => key.slice(7, 37)).join(''))
      seen.set(character, (seen.get(character) ?? 0) + 1);
    // 60,000 draws, 968 expected of each, standard deviation 31. A deviation of more than seven
    // means that the generator is biased.
    for (const character of alphabet) expect(Math.abs((seen.get(character) ?? 0) - 968)).toBeLessThan(7 * 31);
  });

  it('is shown by its prefix and its first and last four characters only', () => {
    expect(keyHint('aln_us_0123456789ABCDEFGHIJKLMNOPQRSTzEdr1dIW9G')).toBe('aln_us_0123…IW9G');
  });

  it('has one fingerprint per pepper, newest first', () => {
    const peppers = [2, 1].map((version) => ({ version, secret: Buffer.alloc(32, version) }));
    const key = generateKey('us', tagSecret);
    const expected = peppers.map(({ secret }) => createHmac('sha256', secret).update(key, 'utf8').digest());
    expect(fingerprints(key, peppers)).toEqual(expected);
  });
});
