import { Finding, isAccepted, NotJudged, Probe, type ProbeOptions } from './probe.ts';
import type { Scenario } from './scenario.ts';
import { scenarios } from './scenarios.ts';

/** The result of a scenario. `notJudged`: only the receiver's state would show it, or it accepts no event at all. */
export type Result = 'passed' | 'failed' | 'notJudged';

/** A scenario with its result; `found` says what the receiver did, or what is missing to judge it. */
export interface Judged extends Pick<Scenario, 'name' | 'title' | 'why' | 'fix'> {
  result: Result;
  found: string | null;
}

export interface Report {
  /** Whether no scenario failed. */
  ok: boolean;
  scenarios: Judged[];
}

/** Nothing answers at the URL: no scenario can be judged. */
export class UnreachableError extends Error {}

/**
 * Runs every scenario against a receiver, one after the other.
 *
 * @throws UnreachableError when it does not answer at all.
 */
export async function certify(options: ProbeOptions): Promise<Report> {
  const probe = new Probe(options);
  const judged: Judged[] = [];
  let acceptsNothing = false;
  for (const scenario of scenarios) {
    const { name, title, why } = scenario;
    const { result, found, fix } =
      acceptsNothing && scenario.needsAccepted !== false
        ? { result: 'notJudged' as const, found: 'It accepts no event: see accepts-event.', fix: scenario.fix }
        : await judge(scenario, probe);
    judged.push({ name, title, why, fix, result, found });
    if (judged.length > 1) continue;
    acceptsNothing = !probe.answers.some(isAccepted);
    const [first] = probe.answers;
    if (first?.problem != null && !/did not answer/.test(first.problem)) throw new UnreachableError(first.problem);
  }
  return { ok: judged.every(({ result }) => result !== 'failed'), scenarios: judged };
}

async function judge({ run, fix }: Scenario, probe: Probe): Promise<Pick<Judged, 'result' | 'found' | 'fix'>> {
  try {
    await run(probe);
    return { result: 'passed', found: null, fix };
  } catch (error) {
    if (error instanceof Finding) return { result: 'failed', found: error.message, fix: error.fix ?? fix };
    if (error instanceof NotJudged) return { result: 'notJudged', found: error.message, fix };
    throw error;
  }
}
