import { Refused } from '#domain/contract/refused.ts';
import { IdentityRefused } from '#domain/identity/refused.ts';

/** Reasons that mean that what the path names does not exist for this person: 404. */
const notFoundReasons: ReadonlySet<string> = new Set([
  'no_such_organization',
  'no_such_key',
  'no_such_webhook',
  'no_such_delivery',
  'no_such_redelivery',
  'no_such_session',
  'no_such_factor',
  'no_such_role',
  'no_such_member',
  'no_such_grant',
  'no_such_seat',
]);

/** A refusal that ends after a time. */
export interface Retry {
  code: 'too_many_attempts' | 'busy';
  status: 429 | 503;
  /** Returns the whole seconds until the form may be submitted again, for `Retry-After`. */
  afterSeconds: (now: Date) => number;
}

export interface Refusal {
  message: string;
  isNotFound: boolean;
  retry: Retry | null;
}

/** Returns a refusal of the domain as the console shows it; null for any other error. */
export function refusalOf(error: unknown): Refusal | null {
  if (!(error instanceof Refused)) return null;
  const retry = error instanceof IdentityRefused ? retryOf(error) : null;
  return { message: error.message, isNotFound: notFoundReasons.has(error.reason), retry };
}

function retryOf({ reason, retryAt }: IdentityRefused): Retry | null {
  if (retryAt === null) return null;
  const kind =
    reason === 'busy'
      ? ({ code: 'busy', status: 503 } as const)
      : ({ code: 'too_many_attempts', status: 429 } as const);
  return { ...kind, afterSeconds: (now) => Math.max(1, Math.ceil((retryAt.getTime() - now.getTime()) / 1000)) };
}
