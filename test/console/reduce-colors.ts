import { crc32, deflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';

/** An RGB color as one number. */
type Color = number;

/** The most colors of a PNG with a palette. */
const paletteSize = 256;
const exactColors = 64;
/** The bits that tell apart 16 shades of red, green and blue. */
const shades = 0xf0f0f0;
const signature = Buffer.from('89504e470d0a1a0a', 'hex');

/**
 * Reduces a PNG to at most 256 colors, which makes pictures of pages three times smaller. It keeps the 64 most
 * frequent ones, such as grounds, and one of those that look the same, so that shades of gray displace no rare color.
 * The browser of `decoder`, a page without a policy, reads it.
 */
export async function reduceColors(decoder: Page, png: Buffer): Promise<Buffer> {
  const { width, height, rgba } = await decoder.evaluate<{
    width: number;
    height: number;
    rgba: string;
  }>(`(async () => {
    const blob = await (await fetch('data:image/png;base64,${png.toString('base64')}')).blob();
    const image = await createImageBitmap(blob);
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(image, 0, 0);
    return { width, height, rgba: new Uint8Array(context.getImageData(0, 0, width, height).data).toBase64() };
  })()`);
  const pixels = Buffer.from(rgba, 'base64');
  const colors = Array.from({ length: width * height }, (_, index) => pixels.readUIntBE(index * 4, 3));
  const counts = new Map<Color, number>();
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  const sorted = [...counts].sort(([a, count], [b, otherCount]) => otherCount - count || a - b).map(([color]) => color);
  const kept = new Set<number>();
  const palette = sorted
    .filter((color, index) => {
      const isNew = !kept.has(color & shades);
      kept.add(color & shades);
      return isNew || index < exactColors;
    })
    .slice(0, paletteSize);
  const indexes = new Map([...counts.keys()].map((color) => [color, findNearest(palette, color)]));

  // Each row begins with its filter: 0, none.
  const rows = Buffer.alloc(height * (width + 1));
  for (const [index, color] of colors.entries())
    rows[index + Math.floor(index / width) + 1] = indexes.get(color) as number;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8); // 8 bits for each pixel, which is an index of the palette
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(palette.flatMap(split))),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Returns the index of the color of the palette that is nearest. */
function findNearest(palette: readonly Color[], color: Color): number {
  const [red, green, blue] = split(color);
  const distances = palette.map((other) => {
    const [otherRed, otherGreen, otherBlue] = split(other);
    return (red - otherRed) ** 2 + (green - otherGreen) ** 2 + (blue - otherBlue) ** 2;
  });
  return distances.indexOf(Math.min(...distances));
}

const split = (color: Color): [red: number, green: number, blue: number] => [
  color >> 16,
  (color >> 8) & 0xff,
  color & 0xff,
];

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
