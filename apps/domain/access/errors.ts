import { DomainError } from '../contract/domain-error.ts';

/** Why a change of an organization's members, roles, seats, access or settings was rejected. */
type OrganizationErrorReason =
  | 'may_not_manage_members'
  | 'may_not_manage_roles'
  | 'may_not_manage_seats'
  | 'no_such_organization'
  | 'no_such_member'
  | 'no_such_role'
  | 'no_such_grant'
  | 'no_such_seat'
  | 'only_owners'
  | 'last_owner'
  | 'not_held'
  | 'wrong_status'
  | 'field_invalid'
  | 'nothing_to_change'
  | 'passkey_first'
  | 'domain_not_allowed'
  | 'role_key_taken'
  | 'role_in_use'
  | 'system_role'
  | 'unknown_permission'
  | 'too_many_roles'
  | 'grant_not_active'
  | 'same_professional'
  | 'no_free_seat'
  | 'family_has_seat'
  | 'seat_ended';

/** An error: `reason` for programs, `message` a sentence for the caller. */
export class OrganizationError extends DomainError<OrganizationErrorReason> {}
