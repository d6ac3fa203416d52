import { DomainError } from '#domain/contract/domain-error.ts';
import { IdentityError } from '#domain/identity/errors.ts';

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
  'no_such_provider',
]);

/** A rejection that ends after a time. */
export interface Retry {
  code: 'too_many_attempts' | 'busy';
  status: 429 | 503;
  /** Returns the whole seconds until the form may be submitted again, for `Retry-After`. */
  afterSeconds: (now: Date) => number;
}

/** The fields that an error of the domain is about, by its reason: the first that the form has. */
const fieldsOfReason: Readonly<Record<string, readonly string[]>> = {
  wrong_code: ['code'],
  wrong_credentials: ['oldPassword', 'password'],
  password_too_short: ['newPassword', 'password'],
  password_too_long: ['newPassword', 'password'],
  password_common: ['newPassword', 'password'],
  password_unchanged: ['newPassword', 'password'],
  url_invalid: ['url'],
  issuer_invalid: ['issuer'],
  provider_differs: ['replace', 'issuer'],
  provider_unavailable: ['issuer', 'organization'],
  sign_in_rejected: ['organization'],
  url_in_use: ['allowSameUrl', 'url'],
  posts_per_second_out_of_range: ['postsPerSecond'],
  headers_would_move: ['removeHeaders', 'url'],
  header_name_invalid: ['name'],
  header_reserved: ['name'],
  no_such_header: ['name'],
  too_many_headers: ['name'],
  header_value_invalid: ['value'],
  headers_too_long: ['value'],
  email_malformed: ['email'],
  email_taken: ['email'],
  email_not_mailable: ['email'],
  domain_not_allowed: ['email'],
  passkey_first: ['passkeysRequired'],
  no_key_in_text: ['key'],
  several_keys_in_text: ['key'],
  expiry_in_the_past: ['expiresOn'],
  address_rejected: ['allowedAddresses'],
};

/** Returns the field of a form that an error is about; null for the form as a whole. */
export const findProblemField = ({ reason }: DomainProblem, fields: Readonly<Record<string, unknown>>): string | null =>
  fieldsOfReason[reason]?.find((name) => name in fields) ?? null;

export interface DomainProblem {
  reason: string;
  message: string;
  isNotFound: boolean;
  retry: Retry | null;
}

/** Returns an error of the domain as the console shows it; null for any other error. */
export function findDomainProblem(error: unknown): DomainProblem | null {
  if (!(error instanceof DomainError)) return null;
  const retry = error instanceof IdentityError ? findRetry(error) : null;
  return { reason: error.reason, message: error.message, isNotFound: notFoundReasons.has(error.reason), retry };
}

function findRetry({ reason, retryAt }: IdentityError): Retry | null {
  if (retryAt === null) return null;
  const kind =
    reason === 'busy'
      ? ({ code: 'busy', status: 503 } as const)
      : ({ code: 'too_many_attempts', status: 429 } as const);
  return { ...kind, afterSeconds: (now) => Math.max(1, Math.ceil((retryAt.getTime() - now.getTime()) / 1000)) };
}
