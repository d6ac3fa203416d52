/** Why a key was not made, rotated, revoked or looked for. */
export type KeyRefusal =
  | 'not_an_active_member'
  | 'may_not_manage_keys'
  | 'scope_not_held'
  | 'no_scopes'
  | 'expiry_in_the_past'
  | 'too_many_keys'
  | 'no_such_key'
  | 'key_not_live'
  | 'overlap_too_long'
  | 'no_key_in_text'
  | 'several_keys_in_text';

/**
 * A refusal of the domain: `reason` for the program, `message` a sentence for the person who asked.
 */
export class KeyRefused extends Error {
  readonly reason: KeyRefusal;

  constructor(reason: KeyRefusal, message: string) {
    super(message);
    this.name = 'KeyRefused';
    this.reason = reason;
  }
}
