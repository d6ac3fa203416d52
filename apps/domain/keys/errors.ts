import { DomainError } from '../contract/domain-error.ts';

/** Why a key was not created, changed, rotated, revoked or found. */
type KeyErrorReason =
  | 'not_an_active_member'
  | 'may_not_manage_keys'
  | 'scope_not_held'
  | 'no_scopes'
  | 'expiry_in_the_past'
  | 'too_many_keys'
  | 'too_many_new_keys'
  | 'no_such_key'
  | 'key_not_live'
  | 'overlap_too_long'
  | 'too_long'
  | 'address_rejected'
  | 'nothing_to_change'
  | 'no_key_in_text'
  | 'several_keys_in_text';

/** An error: `reason` for programs, `message` a sentence for the caller. */
export class KeyError extends DomainError<KeyErrorReason> {}
