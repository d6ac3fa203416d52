/** Milliseconds of a clock that all processes of one machine share, and that no one sets. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
