import {
  grantEndReasons,
  grantKinds,
  memberStatuses,
  organizationKinds,
  referralStates,
  seatEndReasons,
  subscriptionStatuses,
} from './choices.ts';
import { changeTypes } from './events.ts';
import type { PlatformCode } from './platform-errors.ts';
import { permissions, systemRoleKeys } from './scopes.ts';

/**
 * What the platform's application reads and calls in schema `platform`, in sentences. From them come
 * the comments of the database, the tables of docs/platform.md, and the descriptions of fields in the
 * JSON Schema of the import. A test compares them with the catalog.
 */

/** Returns values as code, in text that comments of the database have too. */
const list = (values: readonly string[]) => values.map((value) => `\`${value}\``).join(', ');
const either = (values: readonly string[]) => `${list(values.slice(0, -1))} or ${list(values.slice(-1))}`;

const organization = 'The organization.';
const neverChanges = 'Its id at the platform, which never changes.';

const organizationColumns = {
  organization: neverChanges,
  name: 'Its name.',
  slug:
    'A short name that no other organization has, with which its members sign in at their provider: lower-case ' +
    'letters, digits and `. _ -`, the first of them a letter or a digit.',
  kind: `${either(organizationKinds)}.`,
};
const organizationDefaults = {
  status: 'Its status, a text of the platform such as `active`. The API shows it, and nothing depends on it.',
  created_at: 'When it was created.',
};
const roleColumns = {
  organization,
  id: neverChanges,
  key: `The key that members name, unique in the organization. Those of the system are ${list(systemRoleKeys)}.`,
  name: 'Its name.',
  description: 'What it is for. It may be empty.',
  permissions: `What its members may do, each once: ${list(permissions)}.`,
};
const memberColumns = {
  organization,
  member: 'The id of the person at the platform, the same in every organization.',
  name: 'The name of the person.',
  email:
    'The address with which the member signs in. It is stored in lower case. Members may share one; none of them can ' +
    'be invited until the others have left or have another.',
  roles:
    'The keys of all roles of the member, of the organization and of the system. An empty list is a member without ' +
    'permissions, who may still have clients.',
};
const memberDefaults = {
  title: 'A title, such as Attorney. Null: none.',
  status: `${either(memberStatuses)}.`,
};
const familyColumns = {
  organization,
  id: 'Its id at the platform, the same in every organization.',
  name: 'The name under which the organization knows it.',
};
const grantColumns = {
  organization,
  id: 'Its id, which events and the roster name. Access that is given again has a new one.',
  kind: `How the professional works with the family: ${either(grantKinds)}. It never changes.`,
  professional: 'The member who has access.',
  family: 'The family that gave access.',
};
const grantDefaults = {
  since: 'When access began, or will begin.',
  ends_at: 'When access ends or ended. Null: no end is planned.',
};
const seatColumns = {
  organization,
  id: 'Its id, which events name. A seat that is given again has a new one.',
  grant_id: 'The access whose family has the seat. It never changes.',
};
const planColumns = { organization, invoiced: 'Seats that are paid by invoice, beside those of subscriptions.' };
const planDefaults = {
  price_currency: 'The currency of the price of a seat, such as `usd`. Null: no price is shown.',
  price_cents: 'The price of a seat in cents. Null: no price is shown.',
};
const subscriptionColumns = {
  organization,
  id: neverChanges,
  status: `${either(subscriptionStatuses)}. Its seats count while it is \`trialing\`, \`active\` or \`past_due\`.`,
  quantity: 'How many seats it pays for.',
};
const subscriptionDefaults = {
  renews_at: 'When it renews. Null: it does not.',
  cancel_at_period_end: 'Whether it ends instead of its next renewal.',
};
const codeColumns = {
  organization,
  id: neverChanges,
  code: 'The code, unique in the organization.',
  link: 'The link that contains the code.',
};
const codeDefaults = { label: 'What the organization calls it. Null: nothing.', active: 'Whether it can be used.' };
const referralColumns = {
  organization,
  id: 'Its id, which never changes and says nothing of the family.',
  code_id: 'The referral code that was used.',
  state: `${either(referralStates)}.`,
};
const invoiceColumns = {
  organization,
  id: neverChanges,
  month: 'The month of the share, such as `2026-09`.',
  currency: 'The currency of the share, such as `usd`.',
  share_cents: 'The share in cents. A refund is negative.',
};

/** The fields of an element of `days`: the counts of a family on a day. */
export const familyDayFields = {
  family: 'The family.',
  day: 'The UTC day, such as `2026-11-20`.',
  messages: 'Messages that were sent.',
  calm_messages: 'Those of them that were calm.',
  exchanges: 'Exchanges that were due.',
  exchanges_on_time: 'Those of them that were on time.',
  expenses_due: 'Expenses for which an answer was due.',
  expenses_answered_in_14_days: 'Those of them that were answered within 14 days.',
};

/** The views: what each shows, and its columns in their order. */
export const platformViews = {
  organization: {
    is: 'The organizations of the region.',
    columns: { ...organizationColumns, ...organizationDefaults },
  },
  role: { is: 'Roles: those of organizations, and without an organization those of the system.', columns: roleColumns },
  member: {
    is: 'Members, also those who left.',
    columns: {
      organization,
      member: memberColumns.member,
      name: memberColumns.name,
      email: memberColumns.email,
      ...memberDefaults,
      roles: memberColumns.roles,
    },
  },
  family: { is: 'Families, once for each of their organizations.', columns: familyColumns },
  client_grant: {
    is: 'Access that families gave to members, also what has ended, and what lies ahead.',
    columns: {
      ...grantColumns,
      ...grantDefaults,
      status:
        '`scheduled` (it has not begun), `active`, `ended`, or `withdrawn` (it never began). The worker writes a ' +
        'begin and a planned end within seconds; reads of the API show them by the clock.',
      end_reason: '`ended`, or `moved` when the professional moved the work out. Null until it has ended.',
    },
  },
  seat: {
    is: 'Seats, also those that ended.',
    columns: {
      ...seatColumns,
      given_at: 'When the seat was given.',
      ended_at: 'When it ended. Null: it is given.',
      reason: `${either(seatEndReasons)}. Null until it has ended.`,
    },
  },
  plan: { is: 'What organizations pay by invoice.', columns: { ...planColumns, ...planDefaults } },
  subscription: {
    is: 'Subscriptions that pay for seats.',
    columns: { ...subscriptionColumns, ...subscriptionDefaults },
  },
  referral_code: { is: 'Referral codes.', columns: { ...codeColumns, ...codeDefaults } },
  referral: { is: 'Referrals of codes.', columns: referralColumns },
  invoice: { is: 'Shares of referrals, by month.', columns: invoiceColumns },
  event: {
    is: 'The events that changes caused, without their bodies. They are kept for `DELIVERY_RETENTION`.',
    columns: {
      organization,
      id: 'The id that receivers get, as a UUID of version 7: its order is that of time.',
      type: `${either(changeTypes)}.`,
      grant_id: 'The access that it is about.',
      created_at: 'When the change was made.',
    },
  },
} as const satisfies Readonly<Record<string, { is: string; columns: Sentences }>>;

type Sentences = Readonly<Record<string, string>>;

/** A function, its arguments in their order, and the codes with which it rejects a call. */
export interface PlatformFunction {
  does: string;
  required: Sentences;
  /** Arguments that have a default. */
  optional?: Sentences;
  codes: readonly PlatformCode[];
}

const checked = ['wrong_isolation', 'argument_missing', 'argument_invalid'] as const;
const inOrganization = [...checked, 'no_such_organization'] as const;
const byId = { organization, id: 'The access.' };
const ended = 'When it ended. Null: now.';

/** The functions that write. Each returns `created`, `changed` or `unchanged`, and the erasure certificates. */
export const platformFunctions: Readonly<Record<string, PlatformFunction>> = {
  put_organization: {
    does: 'Creates an organization, with a plan of no seats, or changes it.',
    required: organizationColumns,
    optional: {
      ...organizationDefaults,
      created_at: 'When it was created. Null: now, and for one that exists no change.',
    },
    codes: [...checked, 'slug_taken'],
  },
  put_role: {
    does: 'Creates a role of the organization, or changes it.',
    required: roleColumns,
    codes: [...inOrganization, 'id_taken', 'key_taken'],
  },
  delete_role: {
    does: 'Deletes a role that no member has.',
    required: { organization, id: 'The role.' },
    codes: ['wrong_isolation', 'argument_missing', 'no_such_organization', 'no_such_role', 'role_in_use'],
  },
  put_member: {
    does: 'Creates a member, or changes it. The member has exactly `roles` afterwards.',
    required: memberColumns,
    optional: memberDefaults,
    codes: [...inOrganization, 'no_such_role'],
  },
  put_family: {
    does: 'Creates a family of the organization, or changes its name.',
    required: familyColumns,
    codes: [...inOrganization, 'family_erased'],
  },
  start_grant: {
    does: 'Gives a member access to a family, now or at `since`. Sends `client.started` when it begins.',
    required: grantColumns,
    optional: {
      since: 'When access began, or will begin. Null: now, and in a repeat not compared.',
      ends_at: 'When access ends or ended. Null: no end is planned, and in a repeat not compared.',
    },
    codes: [
      ...inOrganization,
      'ends_before_it_begins',
      'no_such_family',
      'family_erased',
      'no_such_member',
      'id_taken',
      'grant_differs',
    ],
  },
  plan_end: {
    does: 'Sets when access will end, or that no end is planned.',
    required: { ...byId, ends_at: 'A time that lies ahead. Null: no end is planned.' },
    codes: [...inOrganization, 'ends_before_it_begins', 'no_such_grant', 'grant_has_ended', 'ends_in_past'],
  },
  end_grant: {
    does:
      'Ends access, and its seat. Sends `client.ended`, and `seat.ended` for the seat. Access that has not begun is ' +
      'withdrawn: nothing is sent.',
    required: byId,
    optional: { reason: `${either(grantEndReasons)}.`, ended_at: ended },
    codes: [...inOrganization, 'lies_ahead', 'ends_before_it_begins', 'no_such_grant', 'grant_has_ended'],
  },
  move_grant: {
    does:
      'Ends access as moved, and starts the same for another member. Sends `client.ended` and `client.started`, and ' +
      '`seat.ended` for the seat. Access that has not begun is withdrawn, and the new one begins at its time.',
    required: {
      ...byId,
      new_id: 'The id of the new access.',
      professional: 'The member who has the new access.',
    },
    codes: [
      ...inOrganization,
      'ends_before_it_begins',
      'no_such_grant',
      'no_such_family',
      'family_erased',
      'no_such_member',
      'id_taken',
      'grant_differs',
      'grant_has_ended',
      'same_professional',
    ],
  },
  give_seat: {
    does: 'Gives a seat to the family of active access. Sends `seat.given`.',
    required: seatColumns,
    optional: { given_at: 'When the seat was given. Null: now.' },
    codes: [
      ...inOrganization,
      'lies_ahead',
      'no_plan',
      'no_such_grant',
      'id_taken',
      'seat_differs',
      'grant_not_active',
      'family_has_seat',
      'no_free_seat',
    ],
  },
  end_seat: {
    does: 'Ends a seat. Sends `seat.ended`. A seat that has ended stays as it is.',
    required: { organization, id: 'The seat.' },
    optional: {
      reason: `${either(seatEndReasons)}.`,
      ended_at: ended,
    },
    codes: [...inOrganization, 'lies_ahead', 'ends_before_it_begins', 'no_such_seat'],
  },
  put_plan: {
    does:
      'Sets the seats that are paid by invoice, and the price that is shown. Seats that are given stay, also when ' +
      'they are more: end them with `end_seat`.',
    required: planColumns,
    optional: planDefaults,
    codes: inOrganization,
  },
  put_subscription: {
    does:
      'Creates a subscription, or changes it. When it pays for fewer seats or has ended, seats that are given stay: ' +
      'end them with `end_seat` and the reason `subscription_ended`.',
    required: subscriptionColumns,
    optional: subscriptionDefaults,
    codes: [...inOrganization, 'id_taken'],
  },
  put_referral_code: {
    does: 'Creates a referral code, or changes it.',
    required: codeColumns,
    optional: codeDefaults,
    codes: [...inOrganization, 'id_taken', 'code_taken'],
  },
  put_referral: {
    does: 'Creates a referral of a code, or changes it.',
    required: referralColumns,
    codes: [...inOrganization, 'no_such_code', 'id_taken'],
  },
  put_invoice: {
    does: 'Creates a share of a month, or changes it.',
    required: invoiceColumns,
    codes: [...inOrganization, 'id_taken', 'sum_too_large'],
  },
  put_family_days: {
    does: 'Writes the counts of families and days. Other days stay.',
    required: {
      organization,
      days: `An array of objects with ${list(Object.keys(familyDayFields))}.`,
    },
    codes: [...inOrganization, 'no_such_family', 'family_erased'],
  },
  erase_family: {
    does:
      'Erases a family in every organization. Returns its certificates, also when it is repeated: then with the ' +
      'reference of the first call.',
    required: { family: 'The family.', reference: 'A case number: at most 64 letters, digits and `. _ / -`.' },
    codes: [...checked, 'no_such_family', 'family_erased', 'too_many_erasures'],
  },
};

/** The view of each kind of the import format, and its fields that have another name than the column. */
const importKinds: Readonly<Record<string, { columns: Sentences; names?: Readonly<Record<string, string>> }>> = {
  organization: { columns: platformViews.organization.columns, names: { id: 'organization' } },
  role: { columns: platformViews.role.columns },
  member: { columns: platformViews.member.columns, names: { userId: 'member', roleKeys: 'roles' } },
  family: { columns: platformViews.family.columns },
  seatPlan: { columns: platformViews.plan.columns },
  subscription: { columns: platformViews.subscription.columns },
  grant: {
    columns: platformViews.client_grant.columns,
    names: { professionalUserId: 'professional', familyId: 'family' },
  },
  seat: { columns: platformViews.seat.columns },
  referralCode: { columns: platformViews.referral_code.columns },
  referral: { columns: platformViews.referral.columns },
  referralInvoice: { columns: platformViews.invoice.columns },
  familyDay: { columns: familyDayFields, names: { familyId: 'family' } },
};

/**
 * Returns the sentence of the column that a field of the import format fills, such as `professionalUserId` of
 * `grant`, or undefined when no view has it.
 */
export function findFieldDescription(kind: string, field: string): string | undefined {
  const { columns, names } = importKinds[kind] ?? { columns: {} };
  const column = names?.[field] ?? field.replace(/[A-Z]|\d+/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.entries(columns).find(([name]) => name === column)?.[1];
}
