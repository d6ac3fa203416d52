import { type RawBuilder, sql } from 'kysely';

/** The words for the result of an entry: on pages, in the filter and its address, and in the CSV. */
export const results = ['Succeeded', 'Denied', 'Invalid request', 'Completed', 'Failed'] as const;

/**
 * The result of an entry. Of a read: `Succeeded`, `Denied` (the key may not, or exceeded its rate
 * limit) or `Invalid request` (also for an organization that does not exist). Of any other action:
 * `Completed`, or `Failed` for a failed sign-in, test event, signature check or redelivery.
 */
export type Result = (typeof results)[number];

const deniedStatuses = [401, 403, 429];

/** What an entry of the log tells its result by. */
interface Outcome {
  /** The HTTP status of a read; null for any other action. */
  status: number | null;
  action: string;
  detail: Record<string, unknown> | null;
}

/** Returns whether an action can fail; every other one is in the log once it completed. */
export const canFail = (action: string): boolean => Object.hasOwn(failures, action);

/** Returns the result of an entry, as `resultConditions` selects it. */
export function getResult({ status, action, detail }: Outcome): Result {
  if (status === null) return canFail(action) && failures[action]?.hasFailed(detail ?? {}) ? 'Failed' : 'Completed';
  if (status < 400) return 'Succeeded';
  return deniedStatuses.includes(status) ? 'Denied' : 'Invalid request';
}

/** The actions that can fail: by their detail, and the same as a condition on an entry `a`. */
const failures: Record<string, { hasFailed(detail: Record<string, unknown>): boolean; condition: string }> = {
  'sign_in.failure': { hasFailed: () => true, condition: 'true' },
  'webhook.tested': {
    hasFailed: ({ delivered }) => delivered !== true,
    condition: `a.detail -> 'delivered' is distinct from 'true'::jsonb`,
  },
  'webhook.verified': {
    hasFailed: ({ result }) => result !== 'verified',
    condition: `a.detail ->> 'result' is distinct from 'verified'`,
  },
  'webhook.redelivered': {
    hasFailed: ({ state }) => state === 'ended',
    condition: `a.detail ->> 'state' is not distinct from 'ended'`,
  },
};

const failedCases = Object.entries(failures).map(([action, { condition }]) => `when '${action}' then ${condition}`);
const failed = sql.raw(`(case a.action ${failedCases.join(' ')} else false end)`);
const denied = sql`a.status in (401, 403, 429)`;

/** Whether an entry is a read that succeeded, one that did not, or no read. Indexes begin with these. */
export const kindConditions = {
  answered: sql`a.status < 400`,
  rejected: sql`a.status >= 400`,
  action: sql`a.status is null`,
};

/** Selects the entries `a` of a result: by their kind, and by what no index contains. */
export const resultConditions: Record<Result, { kind: keyof typeof kindConditions; rest: RawBuilder<unknown> | null }> =
  {
    Succeeded: { kind: 'answered', rest: null },
    Denied: { kind: 'rejected', rest: denied },
    'Invalid request': { kind: 'rejected', rest: sql`not ${denied}` },
    Completed: { kind: 'action', rest: sql`not ${failed}` },
    Failed: { kind: 'action', rest: failed },
  };
