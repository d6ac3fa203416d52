import type { Probe } from './probe.ts';

/** One thing that a receiver has to do. */
export interface Scenario {
  name: string;
  /** What it does, as a sentence that begins with a verb. */
  title: string;
  /** What happens otherwise. */
  why: string;
  /** What to change. */
  fix: string;
  /** False: it can be judged of a receiver that accepts no event. */
  needsAccepted?: false;
  /**
   * @throws Finding when the receiver does something else.
   * @throws NotJudged when the receiver's state is needed and missing.
   */
  run: (probe: Probe) => Promise<void>;
}
