import { OrganizationRefused } from '#domain/access/organization-refused.ts';
import { IdentityRefused } from '#domain/identity/refused.ts';
import { KeyRefused } from '#domain/keys/refused.ts';
import { WebhookRefused } from '#domain/webhooks/refused.ts';
import { WorkflowsAway } from '../workflows.ts';

/** The domain's refusals: `reason` is for programs, `message` is a sentence for the person. */
const refusals = [IdentityRefused, KeyRefused, OrganizationRefused, WebhookRefused, WorkflowsAway] as const;

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
  const refusal = refusals.some((kind) => error instanceof kind)
    ? (error as InstanceType<(typeof refusals)[number]>)
    : null;
  if (refusal === null) return null;
  const retry = refusal instanceof IdentityRefused ? retryOf(refusal) : null;
  return { message: refusal.message, isNotFound: notFoundReasons.has(refusal.reason), retry };
}

function retryOf({ reason, retryAt }: IdentityRefused): Retry | null {
  if (retryAt === null) return null;
  const kind =
    reason === 'busy'
      ? ({ code: 'busy', status: 503 } as const)
      : ({ code: 'too_many_attempts', status: 429 } as const);
  return { ...kind, afterSeconds: (now) => Math.max(1, Math.ceil((retryAt.getTime() - now.getTime()) / 1000)) };
}
