import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { withReadableResponse } from '../../apps/orgctl/delivery.ts';

it('a response is printed as text, and in hex when it is encoded', () => {
  const read = (response: Buffer | null, responseEncoding: string | null = null) =>
    withReadableResponse({ response, responseEncoding });
  const bytes = gzipSync('ok');
  expect(read(null)).toEqual({ response: null, responseEncoding: null });
  expect(read(Buffer.from('é'))).toEqual({ response: 'é', responseEncoding: null });
  expect(read(bytes, 'gzip')).toEqual({ response: null, responseEncoding: 'gzip', responseHex: bytes.toString('hex') });
  expect(read(Buffer.from([0xff]))).toEqual({ response: '\uFFFD', responseEncoding: null });
});
