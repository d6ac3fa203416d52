import { encode } from 'uqr';
import { type Html, trusted } from '../web/html.ts';

/**
 * A QR code as a picture in the page, black on white in both color schemes (some cameras read no
 * inverted code). `text` is never shown beside it.
 */
export function qrCode(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const modules = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])));
  // Only numbers of ours and a fixed label stand in this markup.
  return trusted(
    `<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label.replace(/[^\w ]/g, '')}" shape-rendering="crispEdges">` +
      `<rect width="${size}" height="${size}" fill="#fff"/><path d="${modules.join('')}" fill="#000"/></svg>`,
  );
}
