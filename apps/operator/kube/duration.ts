const unitSeconds = { h: 3_600, m: 60, s: 1 } as const;

/** Returns the seconds of a duration such as `1h30m`, whose form the API server has checked. */
export function readSeconds(duration: string): number {
  let seconds = 0;
  for (const [, count, unit] of duration.matchAll(/(\d+)([hms])/g))
    seconds += Number(count) * unitSeconds[unit as keyof typeof unitSeconds];
  return seconds;
}
