/** The delay that RFC 8305, section 8, recommends between connection attempts. */
const delayMs = 250;

type Success<Found> = Extract<Found, { ok: true }>;
type Failure<Found> = Extract<Found, { ok: false }>;

/**
 * Tries candidates in their order until one succeeds. The next begins 250 ms after the one before,
 * or at once when one has failed, and those before continue: a dead one costs little, and a slow one
 * may still succeed. `start` gets a signal that aborts when another has succeeded or `signal`
 * aborts. It has to end then, and no other begins.
 */
export function tryStaggered<Candidate, Found extends { ok: boolean }>(
  candidates: readonly Candidate[],
  start: (candidate: Candidate, signal: AbortSignal) => Promise<Found>,
  signal: AbortSignal,
): Promise<{ success: Success<Found> | null; failures: Failure<Found>[] }> {
  const others = new AbortController();
  const either = AbortSignal.any([signal, others.signal]);
  const failures: Failure<Found>[] = [];
  let begun = 0;
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const end = (success: Success<Found> | null) => {
      clearTimeout(timer);
      others.abort();
      resolve({ success, failures });
    };
    const beginNext = () => {
      clearTimeout(timer);
      const candidate = candidates[begun];
      if (candidate === undefined || (begun > 0 && either.aborted)) return;
      begun += 1;
      timer = setTimeout(beginNext, delayMs);
      start(candidate, either).then((found) => {
        if (found.ok) return end(found as Success<Found>);
        failures.push(found as Failure<Found>);
        beginNext();
        if (failures.length === begun) end(null);
      }, reject);
    };
    beginNext();
    if (begun === 0) end(null);
  });
}
