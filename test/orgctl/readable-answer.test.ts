import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { withReadableAnswer } from '../../apps/orgctl/delivery.ts';

it('an answer is printed as text, and in hex when it is encoded', () => {
  const read = (answer: Buffer | null, answerEncoding: string | null = null) =>
    withReadableAnswer({ answer, answerEncoding });
  const bytes = gzipSync('ok');
  expect(read(null)).toEqual({ answer: null, answerEncoding: null });
  expect(read(Buffer.from('é'))).toEqual({ answer: 'é', answerEncoding: null });
  expect(read(bytes, 'gzip')).toEqual({ answer: null, answerEncoding: 'gzip', answerHex: bytes.toString('hex') });
  expect(read(Buffer.from([0xff]))).toEqual({ answer: '\uFFFD', answerEncoding: null });
});
