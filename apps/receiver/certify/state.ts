import { z } from 'zod';
import { StartupError } from '#runtime/errors.ts';
import { readBody } from '../body.ts';
import { describeProblem, request, type Target } from '../http.ts';

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

/** What to answer for an id, by the member that it is in. */
const expected: Record<string, string> = {
  events: 'how many times the event was applied, 0 if never applied',
  grants: 'the state of the client, "active" or "ended"',
  seats: 'the state of the seat, "active" or "ended"',
};

/** Says what a receiver reported for an id: `grants.ID of --state-url is "active"`. */
export function describeRead(state: State, member: keyof State, id: string): string {
  const value = state[member]?.[id];
  return `${member}.${id} of --state-url is ${value === undefined ? 'absent' : JSON.stringify(value)}`;
}

/**
 * Returns a function that gets the state with `GET <url>?event=…&grant=…&seat=…`.
 *
 * The function throws StartupError when there is no such answer; the message says what was read instead, and where.
 */
export function readStateAt({ url, ca }: Target): ReadState {
  return async (question) => {
    const at = new URL(url);
    const problem = (what: string) => new StartupError(`--state-url: ${at.origin}${at.pathname} ${what}.`);
    for (const [name, id] of Object.entries(question)) at.searchParams.set(name, id);
    const { status, text } = await readText({ url: at.href, ca }).catch((error: Error) => {
      throw new StartupError(`--state-url: ${describeProblem(error, { url, ca }, answerWithinMs)}.`);
    });
    if (status !== 200) throw problem(`answered ${status} instead of 200`);
    const body = readJson(text);
    const found = State.safeParse(body);
    if (found.success) return found.data;
    const [{ path } = { path: [] }] = found.error.issues;
    const value = path.reduce<unknown>((part, name) => (part as Record<PropertyKey, unknown>)[name], body);
    const [member, id] = path;
    const needed =
      id === undefined
        ? '{"events": {"ID": 1}, "grants": {"ID": "active"}, "seats": {"ID": "ended"}}, each only if it is kept'
        : expected[String(member)];
    throw problem(`has ${clip(JSON.stringify(value))} as ${path.join('.') || 'its body'}; needed is ${needed}`);
  };
}

const answerWithinMs = 10_000;

async function readText(target: Target): Promise<{ status: number | undefined; text: string }> {
  const response = await request(target, { headers: [], body: null, timeoutMs: answerWithinMs });
  return { status: response.statusCode, text: String((await readBody(response)) ?? 'more than 1 MiB') };
}

/** Returns the text itself when it is no JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const clip = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
