import { setTimeout as wait } from 'node:timers/promises';

/** Resolves once the condition holds; throws with `what` when it has not within `deadlineMs`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 10_000,
): Promise<void> {
  const giveUpAtMs = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs) throw new Error(`It did not happen within ${deadlineMs} ms: ${what}`);
    await wait(10);
  }
}
