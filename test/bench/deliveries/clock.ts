/** Returns the milliseconds of a monotonic clock that all processes of one machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
