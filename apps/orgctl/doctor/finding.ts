/** What a check found. Neither message nor remedy contains a key, a secret or a value of a row. */
export interface Finding {
  /** What was checked, for programs: `postgresql`, `redis`, `temporal`, `dns`, `clock`, … */
  check: string;
  /** `warning`: works now, and needs a person. `skipped`: the settings to check it are not set. */
  state: 'ok' | 'warning' | 'failed' | 'skipped';
  message: string;
  /** What to do, as a sentence; null when there is nothing to do. */
  remedy: string | null;
}

/** Returns functions that make the findings of one check. */
export const createFindings = (check: string) => ({
  ok: (message: string): Finding => ({ check, state: 'ok', message, remedy: null }),
  warning: (message: string, remedy: string): Finding => ({ check, state: 'warning', message, remedy }),
  failed: (message: string, remedy: string): Finding => ({ check, state: 'failed', message, remedy }),
  skipped: (message: string): Finding => ({ check, state: 'skipped', message, remedy: null }),
  /** `ok`, or `failed` with both sentences when `isGood` is false. */
  expectThat: (isGood: boolean, message: string, problem: string, remedy: string): Finding =>
    isGood ? { check, state: 'ok', message, remedy: null } : { check, state: 'failed', message: problem, remedy },
});

const labels: Record<Finding['state'], string> = { ok: 'ok', warning: 'WARN', failed: 'FAILED', skipped: 'skip' };

/** Returns a finding as lines for people. */
export function showFinding({ state, message, remedy }: Finding): string {
  const line = `${labels[state].padEnd(6)} ${message}`;
  return remedy === null ? line : `${line}\n         ${remedy}`;
}
