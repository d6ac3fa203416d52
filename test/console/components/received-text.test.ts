import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { receivedText } from '../../../apps/console/components/received-text.ts';

const shown = (response: Buffer, encoding: string | null = null) =>
  String(receivedText('Response body', response, encoding));

describe('the body of a response', () => {
  it('is shown as text, also when its last character is cut off', () => {
    expect(shown(Buffer.from('naïve'))).toContain('naïve');
    const cut = shown(Buffer.from('naïve €').subarray(0, -1));
    expect(cut).toContain('naïve ');
    expect(cut).not.toContain('\uFFFD');
  });

  it('with an encoding that was not asked for is shown as bytes in hex, with the encoding’s name', () => {
    const bytes = gzipSync('{"ok":true}');
    const text = shown(bytes, 'gzip');
    expect(text.replaceAll('\n', '')).toContain(bytes.toString('hex'));
    expect(text).toContain('gzip');
    expect(text).not.toContain('\uFFFD');
    expect(shown(Buffer.from('ok'), 'x-none')).toContain('6f6b');
    expect(shown(Buffer.from('ok'), '<b>')).not.toContain('<b>');
  });

  it('that is not UTF-8 is shown as text, and says which characters could not be read', () => {
    const text = shown(Buffer.from('Not found: /gr\xf6\xdfe', 'latin1'));
    expect(text).toContain('Not found: /gr\uFFFD\uFFFDe');
    expect(text).toContain('Bytes that are not UTF-8');
  });
});
