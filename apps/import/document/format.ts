import type { z } from 'zod';
import { seatEndReasons } from '#domain/contract/events.ts';
import { regionCodes } from '#domain/contract/regions.ts';
import { Organization } from '#domain/contract/resources.ts';
import { permissions } from '#domain/contract/scopes.ts';
import type { Layout } from './document-reader.ts';
import {
  anyText,
  cents,
  count,
  dateTime,
  day,
  listOf,
  month,
  oneOf,
  price,
  streamedList,
  streamedObject,
  text,
  uuid,
  word,
  yesOrNo,
} from './field-types.ts';

/**
 * The import format, kind by kind, with the column that stages each field. Source: design, section
 * 9.
 */

/** The kinds of objects in a document, in the order they are written to the database. */
export type Kind =
  | 'organization'
  | 'role'
  | 'member'
  | 'family'
  | 'seatPlan'
  | 'subscription'
  | 'grant'
  | 'seat'
  | 'referralCode'
  | 'referral'
  | 'referralInvoice'
  | 'familyDay';

/** How progress and results call the objects of a kind. */
export const kindPlurals: Record<Kind, string> = {
  organization: 'organizations',
  role: 'roles',
  member: 'members',
  family: 'families',
  seatPlan: 'seatPlans',
  subscription: 'subscriptions',
  grant: 'grants',
  seat: 'seats',
  referralCode: 'referralCodes',
  referral: 'referrals',
  referralInvoice: 'referralInvoices',
  familyDay: 'familyDays',
};

/**
 * What is checked and what is staged of one field: its type, and the definition of its column
 * (without one, it is not staged).
 */
interface Field {
  type: z.ZodType;
  column?: string;
  /** What is staged of the field, when it is not the field itself. */
  staged?: (value: unknown) => unknown;
}

type Fields = Record<string, Field>;

export interface KindFormat {
  /** The temporary table its rows wait in. */
  table: string;
  /** The columns that say where in the document the object stands; one for each list around it. */
  positions: readonly string[];
  fields: Fields;
  /**
   * What fields of one object must be to each other; a field that is itself wrong is absent.
   * Problems by field.
   */
  rules?: (value: Record<string, unknown>) => [field: string, problem: string][];
}

/** A text column, ordered and compared by code point like the column it is for. */
const textColumn = (name: string) => `${name} text collate "C"`;
const isPresent = (value: unknown) => value !== undefined;
const inOrganization = ['organization', 'position'] as const;

const subscriptionStatuses = [
  'incomplete',
  'incomplete_expired',
  'trialing',
  'active',
  'past_due',
  'canceled',
  'unpaid',
  'paused',
];

/** The part of a sum may not be more than the sum. */
function within(value: Record<string, unknown>, part: string, whole: string): [string, string][] {
  const [a, b] = [value[part], value[whole]];
  return typeof a === 'number' && typeof b === 'number' && a > b ? [[part, `is more than ${whole}`]] : [];
}

/** ISO date-times of one form compare as text. */
function notBefore(value: Record<string, unknown>, end: string, begin: string): [string, string][] {
  const [a, b] = [value[end], value[begin]];
  return typeof a === 'string' && typeof b === 'string' && a < b ? [[end, `is before ${begin}`]] : [];
}

export const formats: Record<Kind, KindFormat> = {
  organization: {
    table: 'import_organization',
    positions: ['position'],
    fields: {
      id: { type: uuid, column: 'id uuid' },
      name: { type: text, column: textColumn('name') },
      slug: { type: word, column: textColumn('slug') },
      kind: { type: oneOf(Organization.shape.kind.options), column: 'kind text' },
      status: { type: word, column: 'status text' },
      createdAt: { type: dateTime, column: 'created_at timestamptz' },
      roles: { type: streamedList },
      members: { type: streamedList },
      families: { type: streamedList },
      grants: { type: streamedList },
      seats: { type: streamedList },
      seatPlan: { type: streamedObject },
      referralCodes: { type: streamedList },
      referralInvoices: { type: streamedList },
      // Left out, the days of mentioned families stay; an empty list takes them away.
      familyDays: { type: streamedList, column: 'has_family_days boolean', staged: isPresent },
    },
  },
  role: {
    table: 'import_role',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      key: { type: word, column: textColumn('key') },
      name: { type: text, column: textColumn('name') },
      description: { type: anyText, column: 'description text' },
      permissions: { type: listOf(oneOf(permissions)), column: 'permissions text[]' },
    },
  },
  member: {
    table: 'import_member',
    positions: inOrganization,
    fields: {
      userId: { type: word, column: textColumn('user_id') },
      name: { type: text, column: textColumn('name') },
      email: { type: text, column: 'email text' },
      title: { type: anyText.nullable(), column: 'title text' },
      status: { type: oneOf(['invited', 'active', 'suspended', 'left']), column: 'status text' },
      roleKeys: { type: listOf(word), column: 'role_keys text[]' },
    },
  },
  family: {
    table: 'import_family',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      name: { type: text, column: textColumn('name') },
    },
  },
  seatPlan: {
    table: 'import_seat_plan',
    positions: ['organization'],
    fields: {
      invoiced: { type: count, column: 'invoiced integer' },
      pricePerSeat: { type: price.nullable(), column: 'price json' },
      subscriptions: { type: streamedList },
    },
  },
  subscription: {
    table: 'import_subscription',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      status: { type: oneOf(subscriptionStatuses), column: 'status text' },
      quantity: { type: count, column: 'quantity integer' },
      renewsAt: { type: dateTime.nullable(), column: 'renews_at timestamptz' },
      cancelAtPeriodEnd: { type: yesOrNo, column: 'cancel_at_period_end boolean' },
    },
  },
  grant: {
    table: 'import_grant',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      kind: { type: oneOf(['attorney', 'neutral']), column: 'kind text' },
      professionalUserId: { type: word, column: textColumn('professional_id') },
      familyId: { type: uuid, column: 'family_id uuid' },
      since: { type: dateTime, column: 'since timestamptz' },
      endsAt: { type: dateTime.nullable(), column: 'ends_at timestamptz' },
      endReason: { type: oneOf(['ended', 'moved']).nullable(), column: 'end_reason text' },
    },
    rules: (grant) => [
      ...notBefore(grant, 'endsAt', 'since'),
      ...(typeof grant.endReason === 'string' && grant.endsAt === null
        ? [['endReason', 'is given, but endsAt is null'] satisfies [string, string]]
        : []),
    ],
  },
  seat: {
    table: 'import_seat',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      grantId: { type: uuid, column: 'grant_id uuid' },
      givenAt: { type: dateTime, column: 'given_at timestamptz' },
      endedAt: { type: dateTime.nullable(), column: 'ended_at timestamptz' },
      reason: { type: oneOf(seatEndReasons).nullable(), column: 'end_reason text' },
    },
    rules: (seat) => {
      const problems = notBefore(seat, 'endedAt', 'givenAt');
      if (typeof seat.reason === 'string' && seat.endedAt === null)
        problems.push(['reason', 'is given, but endedAt is null']);
      if (seat.reason === null && typeof seat.endedAt === 'string')
        problems.push(['reason', 'is null, but endedAt is given']);
      return problems;
    },
  },
  referralCode: {
    table: 'import_referral_code',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      code: { type: word, column: textColumn('code') },
      link: { type: text, column: 'link text' },
      label: { type: anyText.nullable(), column: 'label text' },
      active: { type: yesOrNo, column: 'active boolean' },
      referrals: { type: streamedList },
    },
  },
  referral: {
    table: 'import_referral',
    positions: ['organization', 'code_position', 'position'],
    fields: {
      id: { type: uuid, column: 'id uuid' },
      state: { type: oneOf(['signed_up', 'qualified', 'not_counted']), column: 'state text' },
    },
  },
  referralInvoice: {
    table: 'import_referral_invoice',
    positions: inOrganization,
    fields: {
      id: { type: uuid, column: 'id uuid' },
      month: { type: month, column: textColumn('month') },
      currency: { type: word, column: textColumn('currency') },
      shareCents: { type: cents, column: 'share_cents bigint' },
    },
  },
  familyDay: {
    table: 'import_family_day',
    positions: inOrganization,
    fields: {
      familyId: { type: uuid, column: 'family_id uuid' },
      day: { type: day, column: 'day date' },
      messages: { type: count, column: 'messages integer' },
      calmMessages: { type: count, column: 'calm_messages integer' },
      exchanges: { type: count, column: 'exchanges integer' },
      exchangesOnTime: { type: count, column: 'exchanges_on_time integer' },
      expensesDue: { type: count, column: 'expenses_due integer' },
      expensesAnsweredIn14Days: { type: count, column: 'expenses_answered_in_14_days integer' },
    },
    rules: (days) => [
      ...within(days, 'calmMessages', 'messages'),
      ...within(days, 'exchangesOnTime', 'exchanges'),
      ...within(days, 'expensesAnsweredIn14Days', 'expensesDue'),
    ],
  },
};

/** The document itself: what stands beside its organizations. */
export const documentFields: Record<'region' | 'asOf' | 'organizations', Field> = {
  region: { type: oneOf(regionCodes) },
  asOf: { type: day },
  organizations: { type: streamedList.unwrap() },
};

/** Where each kind stands in the document. */
export const documentLayout: Layout<Kind | 'document'> = {
  kind: 'document',
  lists: {
    organizations: {
      kind: 'organization',
      lists: {
        roles: { kind: 'role' },
        members: { kind: 'member' },
        families: { kind: 'family' },
        grants: { kind: 'grant' },
        seats: { kind: 'seat' },
        referralCodes: { kind: 'referralCode', lists: { referrals: { kind: 'referral' } } },
        referralInvoices: { kind: 'referralInvoice' },
        familyDays: { kind: 'familyDay' },
      },
      parts: { seatPlan: { kind: 'seatPlan', lists: { subscriptions: { kind: 'subscription' } } } },
    },
  },
};
