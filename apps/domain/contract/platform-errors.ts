/**
 * The codes with which functions of schema `platform` reject a call: the SQLSTATE, what the code means, and what the
 * caller does. A code is the constraint name of the error.
 */
export const platformErrors = {
  wrong_isolation: {
    state: '25000',
    means: 'The transaction is not READ COMMITTED; the detail says what it is.',
    todo: 'Begin it with `isolation level read committed`, and repeat it.',
  },
  argument_missing: { state: '22023', means: 'An argument without a default is null.', todo: 'Pass it.' },
  argument_invalid: {
    state: '22023',
    means: 'An argument has another form.',
    todo: 'The hint has the form, or the values.',
  },
  lies_ahead: {
    state: '22023',
    means: 'A time is more than a minute ahead.',
    todo: 'Call when it has come, or `plan_end`.',
  },
  ends_before_it_begins: {
    state: '22023',
    means: 'An end is before its begin.',
    todo: 'Correct the time. Without `ended_at`, access or a seat ends now.',
  },
  ends_in_past: { state: '22023', means: 'A planned end has passed.', todo: 'Call `end_grant`.' },
  no_such_organization: {
    state: 'P0002',
    means: 'The organization does not exist.',
    todo: 'Check the id, or call `put_organization` first.',
  },
  no_such_member: { state: 'P0002', means: 'The organization has no such member.', todo: 'Call `put_member`.' },
  no_such_role: {
    state: 'P0002',
    means: 'The organization has no such role.',
    todo: 'Name roles by their keys, or call `put_role` first. The detail says which one, counted from 0.',
  },
  no_such_family: {
    state: 'P0002',
    means: 'The organization has no such family.',
    todo: 'Call `put_family` for this organization first. For `erase_family`: no organization has it.',
  },
  no_such_grant: {
    state: 'P0002',
    means: 'The organization has no such access.',
    todo: 'Check the id, or repeat the call after `start_grant`. The hint names another organization that has it.',
  },
  no_such_seat: {
    state: 'P0002',
    means: 'The organization has no such seat.',
    todo: 'Check the id, or repeat the call after `give_seat`. The hint names another organization that has it.',
  },
  no_such_code: {
    state: 'P0002',
    means: 'The organization has no such referral code.',
    todo: 'Call `put_referral_code`.',
  },
  no_plan: { state: 'P0002', means: 'The organization has no plan.', todo: 'Call `put_plan`.' },
  id_taken: { state: '23505', means: 'Another organization has the id.', todo: 'Use a new id.' },
  grant_differs: {
    state: '23505',
    means: 'The access exists with other values; the detail names them.',
    todo: 'Call `plan_end` for `ends_at`, `move_grant` for `professional`; else end it and start another.',
  },
  seat_differs: {
    state: '23505',
    means: 'The seat exists with other values; the detail names them.',
    todo: 'Use a new id.',
  },
  slug_taken: { state: '23505', means: 'Another organization has the slug.', todo: 'Use another slug.' },
  key_taken: { state: '23505', means: 'Another role has the key.', todo: 'Use another key.' },
  code_taken: { state: '23505', means: 'Another referral code has the text.', todo: 'Use another text.' },
  grant_has_ended: {
    state: '23514',
    means: 'The access has ended otherwise; the detail says how.',
    todo: 'Nothing: an end is final.',
  },
  grant_not_active: {
    state: '23514',
    means: 'A seat needs active access; the detail says what it is: `ended`, `scheduled` or `withdrawn`.',
    todo: 'Start access first, or call when it has begun.',
  },
  same_professional: { state: '23514', means: 'The member has this access.', todo: 'Name another member.' },
  family_has_seat: { state: '23514', means: 'The family has the seat in the detail.', todo: 'End that seat first.' },
  no_free_seat: { state: '23514', means: 'Every seat is given.', todo: 'End one, or raise the plan.' },
  role_in_use: { state: '23514', means: 'Members have the role.', todo: 'Remove it by `put_member` first.' },
  family_erased: {
    state: '23514',
    means: 'The family was erased.',
    todo: 'Drop the call. A family that returns has a new id.',
  },
  too_many_erasures: {
    state: '23514',
    means: 'The platform has erased as many families in 24 hours as the owner allows.',
    todo: 'Erase it later, or by `orgctl family erase`.',
  },
  sum_too_large: {
    state: '23514',
    means: 'The shares of a month and currency exceed 2^53 - 1.',
    todo: 'Correct the share.',
  },
} as const;

export type PlatformCode = keyof typeof platformErrors;
