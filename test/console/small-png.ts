import { crc32, deflateSync, inflateSync } from 'node:zlib';

const signatureBytes = 8;

/** Maximum number of colors. */
const most = 256;

/**
 * Writes a screenshot (PNG, 8 bits a channel, opaque) with at most 256 colors: a third of the bytes
 * for text and areas of one color. The most frequent colors stay exact; others, the edges of
 * letters, become the nearest of them. The same picture always gives the same file.
 */
export function withPalette(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png);
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 3) {
    const color = pixels.readUIntBE(at, 3);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const byCount = [...counts].sort(([a, timesA], [b, timesB]) => timesB - timesA || a - b).map(([color]) => color);
  const kept = byCount.slice(0, most);
  const indexes = new Map(byCount.map((color, index) => [color, index < most ? index : nearest(kept, color)]));
  return encode(width, height, pixels, kept, indexes);
}

/** Returns the nearest color, by the sum of squared differences of its channels. */
function nearest(colors: readonly number[], color: number): number {
  const apart = (other: number) =>
    [16, 8, 0].reduce((sum, shift) => sum + (((other >> shift) & 0xff) - ((color >> shift) & 0xff)) ** 2, 0);
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [index, other] of colors.entries()) {
    const distance = apart(other);
    if (distance < least) [best, least] = [index, distance];
  }
  return best;
}

/** Pixels as red, green, blue. Source: PNG specification, third edition, sections 7 and 9. */
export function decode(png: Buffer): { width: number; height: number; pixels: Buffer } {
  const parts: Buffer[] = [];
  let header = png.subarray(0, 0);
  for (let at = signatureBytes; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const [type, data] = [png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + png.readUInt32BE(at))];
    if (type === 'IHDR') header = data;
    if (type === 'IDAT') parts.push(data);
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header[8] !== 8 || header[9] !== 2) throw new Error('the screenshot is not of 8 bits a channel without alpha');
  const filtered = inflateSync(Buffer.concat(parts));
  const stride = width * 3;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) unfilter(filtered, pixels, y, stride);
  return { width, height, pixels };
}

/** Decodes one line: each byte is stored as its difference to the prediction from its neighbors. */
function unfilter(filtered: Buffer, pixels: Buffer, y: number, stride: number): void {
  const from = y * (stride + 1);
  const kind = filtered[from] ?? 0;
  for (let x = 0; x < stride; x += 1) {
    const at = y * stride + x;
    const left = x < 3 ? 0 : (pixels[at - 3] ?? 0);
    const above = y === 0 ? 0 : (pixels[at - stride] ?? 0);
    const corner = x < 3 || y === 0 ? 0 : (pixels[at - stride - 3] ?? 0);
    const predicted = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][kind] ?? 0;
    pixels[at] = ((filtered[from + 1 + x] ?? 0) + predicted) & 0xff;
  }
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

function encode(
  width: number,
  height: number,
  pixels: Buffer,
  colors: readonly number[],
  indexes: ReadonlyMap<number, number>,
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const palette = Buffer.alloc(colors.length * 3);
  for (const [index, color] of colors.entries()) palette.writeUIntBE(color, index * 3, 3);
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      lines[y * (width + 1) + 1 + x] = indexes.get(pixels.readUIntBE((y * width + x) * 3, 3)) ?? 0;
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(lines, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
