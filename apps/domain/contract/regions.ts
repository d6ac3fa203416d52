/**
 * The regions of the service. One installation serves one region; nothing is shared across them.
 */
export const regions = {
  us: { name: 'United States', keyPrefix: 'aln_us_' },
  ca: { name: 'Canada', keyPrefix: 'aln_ca_' },
} as const;

export type Region = keyof typeof regions;

/** Every region's code, in a fixed order. */
export const regionCodes = Object.keys(regions) as Region[];

export function isRegion(text: string): text is Region {
  return Object.hasOwn(regions, text);
}
