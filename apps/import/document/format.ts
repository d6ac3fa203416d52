import type { z } from 'zod';
import {
  grantEndReasons,
  grantKinds,
  memberStatuses,
  organizationKinds,
  referralStates,
  seatEndReasons,
  subscriptionStatuses,
} from '#domain/contract/choices.ts';
import { regionCodes } from '#domain/contract/regions.ts';
import { permissions } from '#domain/contract/scopes.ts';
import type { Layout } from './document-reader.ts';
import {
  anyText,
  cents,
  choice,
  dateTime,
  day,
  dayCount,
  distinctList,
  emailText,
  month,
  orNull,
  price,
  seatCount,
  slug,
  streamedList,
  streamedObject,
  text,
  uuid,
  word,
  yesOrNo,
} from './field-types.ts';

/** The import format by kind, with the column that stages each field. */

/** The kinds of objects in a document, in the order of writing, with their names in results. */
export const kindPlurals = {
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
} as const;
export type Kind = keyof typeof kindPlurals;

/** How one field is checked and staged. */
interface Field {
  type: z.ZodType;
  /** The definition of its column; a field without one is not staged. */
  column?: string;
  /** Returns what is staged, when that is not the field's value itself. */
  staged?: (value: unknown) => unknown;
}

type Fields = Record<string, Field>;

export interface KindFormat {
  /** The temporary table of its rows. */
  table: string;
  /** The columns that hold the object's position in the document, one for each list around it. */
  positions: readonly string[];
  fields: Fields;
  /** Checks the right fields of one object against each other. Returns problems by field. */
  rules?: (value: Record<string, unknown>) => [field: string, problem: string][];
}

const inOrganization = ['organization', 'position'] as const;

/** A field that is staged in a column of a PostgreSQL type. */
const staged = (type: z.ZodType, column: string): Field => ({ type, column });
/** A text that is ordered and compared by code point, like its column. */
const stagedText = (type: z.ZodType, name: string): Field => staged(type, `${name} text collate "C"`);
const id = staged(uuid, 'id uuid');
const name = stagedText(text, 'name');
const list: Field = { type: streamedList };
/** A list whose absence says something else than an empty one: what it leaves out stays. */
const notedList = (name: string): Field => ({
  type: streamedList,
  column: `has_${name} boolean`,
  staged: (value) => value !== undefined,
});

/** Requires that a part is not larger than its sum. */
function within(value: Record<string, unknown>, part: string, whole: string): [string, string][] {
  const [a, b] = [value[part], value[whole]];
  return typeof a === 'number' && typeof b === 'number' && a > b ? [[part, `is more than ${whole}`]] : [];
}

/** ISO date-times of the same form can be compared as text. */
function notBefore(value: Record<string, unknown>, end: string, begin: string): [string, string][] {
  const [a, b] = [value[end], value[begin]];
  return typeof a === 'string' && typeof b === 'string' && a < b ? [[end, `is before ${begin}`]] : [];
}

/** Returns the format of a kind whose objects are in a list of an organization. */
const listed = (table: string, fields: Fields, rules?: KindFormat['rules']): KindFormat => ({
  table,
  positions: inOrganization,
  fields,
  ...(rules && { rules }),
});

export const formats: Record<Kind, KindFormat> = {
  organization: {
    table: 'import_organization',
    positions: ['position'],
    fields: {
      id,
      name,
      slug: stagedText(slug, 'slug'),
      kind: staged(choice(organizationKinds), 'kind text'),
      status: staged(word, 'status text'),
      createdAt: staged(dateTime, 'created_at timestamptz'),
      roles: list,
      members: notedList('members'),
      families: list,
      grants: notedList('grants'),
      seats: notedList('seats'),
      seatPlan: { type: streamedObject },
      referralCodes: notedList('referral_codes'),
      referralInvoices: list,
      // If it is left out, the days of mentioned families stay; an empty list deletes them.
      familyDays: notedList('family_days'),
    },
  },
  role: listed('import_role', {
    id,
    key: stagedText(word, 'key'),
    name,
    description: staged(anyText, 'description text'),
    permissions: staged(distinctList(choice(permissions)), 'permissions text[]'),
  }),
  member: listed('import_member', {
    userId: stagedText(word, 'user_id'),
    name,
    email: staged(emailText, 'email text'),
    title: staged(orNull(anyText), 'title text'),
    status: staged(choice(memberStatuses), 'status text'),
    // If it is left out, the roles of a member stay; an empty list removes them.
    roleKeys: staged(distinctList(word).optional(), 'role_keys text[]'),
  }),
  family: listed('import_family', { id, name }),
  seatPlan: {
    table: 'import_seat_plan',
    positions: ['organization'],
    fields: {
      invoiced: staged(seatCount, 'invoiced integer'),
      pricePerSeat: staged(orNull(price), 'price json'),
      subscriptions: notedList('subscriptions'),
    },
  },
  subscription: listed('import_subscription', {
    id,
    status: staged(choice(subscriptionStatuses), 'status text'),
    quantity: staged(seatCount, 'quantity integer'),
    renewsAt: staged(orNull(dateTime), 'renews_at timestamptz'),
    cancelAtPeriodEnd: staged(yesOrNo, 'cancel_at_period_end boolean'),
  }),
  grant: listed(
    'import_grant',
    {
      id,
      kind: staged(choice(grantKinds), 'kind text'),
      professionalUserId: stagedText(word, 'professional_id'),
      familyId: staged(uuid, 'family_id uuid'),
      since: staged(dateTime, 'since timestamptz'),
      endsAt: staged(orNull(dateTime), 'ends_at timestamptz'),
      endReason: staged(orNull(choice(grantEndReasons)), 'end_reason text'),
    },
    (grant) => {
      const problems = notBefore(grant, 'endsAt', 'since');
      if (typeof grant.endReason === 'string' && grant.endsAt === null)
        problems.push(['endReason', 'is given, but endsAt is null']);
      return problems;
    },
  ),
  seat: listed(
    'import_seat',
    {
      id,
      grantId: staged(uuid, 'grant_id uuid'),
      givenAt: staged(dateTime, 'given_at timestamptz'),
      endedAt: staged(orNull(dateTime), 'ended_at timestamptz'),
      reason: staged(orNull(choice(seatEndReasons)), 'end_reason text'),
    },
    (seat) => {
      const problems = notBefore(seat, 'endedAt', 'givenAt');
      if (typeof seat.reason === 'string' && seat.endedAt === null)
        problems.push(['reason', 'is given, but endedAt is null']);
      if (seat.reason === null && typeof seat.endedAt === 'string')
        problems.push(['reason', 'is null, but endedAt is given']);
      return problems;
    },
  ),
  referralCode: listed('import_referral_code', {
    id,
    code: stagedText(word, 'code'),
    link: staged(text, 'link text'),
    label: staged(orNull(anyText), 'label text'),
    active: staged(yesOrNo, 'active boolean'),
    referrals: list,
  }),
  referral: {
    table: 'import_referral',
    positions: ['organization', 'code_position', 'position'],
    fields: { id, state: staged(choice(referralStates), 'state text') },
  },
  referralInvoice: listed('import_referral_invoice', {
    id,
    month: stagedText(month, 'month'),
    currency: stagedText(word, 'currency'),
    shareCents: staged(cents, 'share_cents bigint'),
  }),
  familyDay: listed(
    'import_family_day',
    {
      familyId: staged(uuid, 'family_id uuid'),
      day: staged(day, 'day date'),
      messages: staged(dayCount, 'messages integer'),
      calmMessages: staged(dayCount, 'calm_messages integer'),
      exchanges: staged(dayCount, 'exchanges integer'),
      exchangesOnTime: staged(dayCount, 'exchanges_on_time integer'),
      expensesDue: staged(dayCount, 'expenses_due integer'),
      expensesAnsweredIn14Days: staged(dayCount, 'expenses_answered_in_14_days integer'),
    },
    (days) => [
      ...within(days, 'calmMessages', 'messages'),
      ...within(days, 'exchangesOnTime', 'exchanges'),
      ...within(days, 'expensesAnsweredIn14Days', 'expensesDue'),
    ],
  ),
};

/** The fields of the document itself, beside its organizations. */
export const documentFields: Record<'$schema' | 'region' | 'asOf' | 'organizations', Field> = {
  $schema: { type: anyText.optional() },
  region: { type: choice(regionCodes) },
  asOf: { type: day },
  organizations: { type: streamedList.unwrap() },
};

/** The position of each kind in the document. */
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
