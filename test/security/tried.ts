/**
 * Says what a part of the security tests tried. `SECURITY_TIMES` multiplies the number of tries (1
 * by default), and `SECURITY_SEED` repeats a run.
 */
import { afterAll } from 'vitest';

const times = Number(process.env.SECURITY_TIMES || 1);
if (!(times > 0)) throw new Error('SECURITY_TIMES is a number above 0');

/** The seed of this process's random values; printed with every part. */
export const seed = Number(process.env.SECURITY_SEED || Date.now() % 2 ** 31);

/** Returns a number of tries for this run: `usual`, multiplied by `SECURITY_TIMES`. */
export const tries = (usual: number): number => Math.max(1, Math.round(usual * times));

/**
 * Counts what the tests of a file try, and prints the counts and the minutes after the last one.
 * @returns a function that adds `count` to what was tried of `what`.
 */
export function reportTried(part: string): (what: string, count?: number) => void {
  const counts = new Map<string, number>();
  const startedAt = performance.now();
  afterAll(() => {
    const tried = [...counts].map(([what, count]) => `${count.toLocaleString('en')} ${what}`).join(', ');
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
    console.log(`  security: ${part}: ${tried} (${minutes} min, SECURITY_SEED=${seed})`);
  });
  return (what, count = 1) => void counts.set(what, (counts.get(what) ?? 0) + count);
}

/** Returns the lines of an app's log that say that something failed, which no caller may cause. */
export const listErrors = (lines: readonly string[]): string[] =>
  lines.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level));
