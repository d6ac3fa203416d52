import { DomainError } from '../contract/domain-error.ts';

/** Why signing in, enrolling or a change of one's own sign-in was rejected. */
type IdentityErrorReason =
  | 'wrong_credentials'
  | 'too_many_attempts'
  | 'busy'
  | 'wrong_code'
  | 'wrong_passkey'
  | 'passkey_attested'
  | 'session_expired'
  | 'second_factor_needed'
  | 'step_up_needed'
  | 'no_such_sign_in'
  | 'no_such_session'
  | 'no_such_factor'
  | 'last_factor'
  | 'too_many_factors'
  | 'setup_expired'
  | 'factor_known'
  | 'password_too_short'
  | 'password_too_long'
  | 'password_common'
  | 'password_unchanged'
  | 'link_expired'
  | 'password_first'
  | 'link_of_another'
  | 'email_malformed'
  | 'email_taken'
  | 'email_ambiguous'
  | 'too_many_invitations'
  | 'no_such_organization'
  | 'no_such_role'
  | 'not_an_active_member'
  | 'already_member'
  | 'member_suspended'
  | 'operator_needed'
  | 'sign_in_rejected'
  | 'client_rejected'
  | 'provider_unavailable'
  | 'issuer_invalid'
  | 'no_such_provider'
  | 'account_in_use'
  | 'provider_session_needed'
  | 'password_session_needed'
  | 'account_not_linked'
  | 'only_way_in'
  | 'provider_differs'
  | 'email_not_mailable';

/**
 * An error: `reason` for programs, `message` a sentence for the caller. Neither contains a secret,
 * or shows whether an address is known. `retryAt` is when the next attempt is accepted; null when
 * that is at once or never.
 */
export class IdentityError extends DomainError<IdentityErrorReason> {
  readonly retryAt: Date | null;

  constructor(reason: IdentityErrorReason, message: string, retryAt: Date | null = null) {
    super(reason, message);
    this.retryAt = retryAt;
  }
}

/** The invited address is of a member, whom no invitation changes. */
export class AlreadyMemberError extends IdentityError {
  readonly personId: string;
  readonly memberName: string;
  readonly present: 'a member' | 'invited';

  constructor({ personId, name, status }: { personId: string; name: string; status: string | null }) {
    const present = status === 'invited' ? 'invited' : 'a member';
    super('already_member', `${name} is already ${present}.`);
    this.present = present;
    this.personId = personId;
    this.memberName = name;
  }
}

/** Rejected until `retryAt`, because too many attempts have failed. */
export class TooManyAttemptsError extends IdentityError {
  constructor(retryAt: Date, now: Date) {
    const minutes = Math.ceil((retryAt.getTime() - now.getTime()) / 60_000);
    const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
    super('too_many_attempts', `Too many attempts have failed. Try again in ${wait}.`, retryAt);
  }
}
