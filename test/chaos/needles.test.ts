import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSearch, listForms } from './needles.ts';

const secret = randomBytes(24);
const search = createSearch(listForms('the secret', secret));
const noise = () => randomBytes(1 + Math.floor(Math.random() * 500));

describe('the search for secrets', () => {
  it('finds bytes in plain, in hex, and in either base64 at every offset', () => {
    for (const offset of [0, 1, 2, 3, 4, 5]) {
      const surrounded = Buffer.concat([randomBytes(offset), secret, randomBytes(5)]);
      for (const encoding of ['latin1', 'hex', 'base64', 'base64url'] as const) {
        const written = Buffer.from(surrounded.toString(encoding), 'latin1');
        expect(search(Buffer.concat([noise(), written, noise()])), `${encoding} at ${offset}`).toEqual(['the secret']);
      }
      expect(search(Buffer.from(secret.toString('hex').toUpperCase()))).toEqual(['the secret']);
    }
  });

  it('finds nothing in a text without them', () => {
    for (let round = 0; round < 100; round += 1) expect(search(randomBytes(10_000))).toEqual([]);
    expect(search(secret.subarray(1))).toEqual([]);
  });
});
