import { z } from 'zod';
import { StartupError } from '#runtime/errors.ts';

/** What a receiver's effects left, as far as it tells: of those ids of a question that it knows. */
const State = z.object({
  /** How many times each event was applied; 0 or absent: not at all. */
  events: z.record(z.string(), z.int()).optional(),
  /** Each grant's last state. */
  grants: z.record(z.string(), z.enum(['active', 'ended'])).optional(),
  /** Each seat's last state. */
  seats: z.record(z.string(), z.enum(['active', 'ended'])).optional(),
});
export type State = z.output<typeof State>;

/** The ids that a question is about. */
export interface StateQuestion {
  event?: string;
  grant?: string;
  seat?: string;
}

/** Asks a receiver for its state. Null: it tells none. */
export type ReadState = (question: StateQuestion) => Promise<State>;

/**
 * Returns a function that gets the state with `GET <url>?event=…&grant=…&seat=…`.
 *
 * The function throws StartupError when there is no such answer.
 */
export function readStateAt(url: string): ReadState {
  return async (question) => {
    const at = new URL(url);
    for (const [name, id] of Object.entries(question)) at.searchParams.set(name, id);
    try {
      const response = await fetch(at, { redirect: 'error', signal: AbortSignal.timeout(10_000) });
      return State.parse(await response.json());
    } catch (error) {
      throw new StartupError(
        `--state-url: ${at.origin}${at.pathname} did not answer with {"events": {"ID": 1}, ` +
          `"grants": {"ID": "active"}, "seats": {"ID": "ended"}} (${(error as Error).name}).`,
      );
    }
  };
}
