/** Returns the contrast of two colors of three bytes each (WCAG 2.2, "contrast ratio"). */
export function contrast(one: Iterable<number>, other: Iterable<number>): number {
  const [a, b] = [luminance(one), luminance(other)];
  return Math.round(((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)) * 100) / 100;
}

function luminance(color: Iterable<number>): number {
  const [red = 0, green = 0, blue = 0] = [...color].map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
