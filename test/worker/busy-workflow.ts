/** Counts to `times` without a pause, for unlimited-worker.test.ts. */
export async function count(times: number): Promise<number> {
  let counted = 0;
  while (counted < times) counted += 1;
  return counted;
}
