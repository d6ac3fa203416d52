import { z } from 'zod';
import { grantKinds, organizationKinds, seatEndReasons } from './choices.ts';
import { outcomesMinimumFamilies, outcomesWindowDays } from './limits.ts';

/**
 * The nine responses, field by field. The OpenAPI document comes from these schemas, and tests
 * check answers with them; in production PostgreSQL's JSON passes through.
 */

const uuid = z.guid();
const dateTime = z.iso.datetime().describe('ISO 8601, UTC, milliseconds, ending in Z.');
/** Rows, or a number that a column of four bytes holds. */
const count = z.int32().min(0).meta({ format: 'int32' });
/** A sum of such numbers. Every reader of JSON reads it exactly: it is at most 2^53 - 1. */
const sum = z.int().min(0).meta({ format: 'int64' });
const grantKind = z.enum(grantKinds);

export const Organization = z.object({
  id: uuid,
  name: z.string(),
  slug: z.string(),
  kind: z.enum(organizationKinds),
  status: z
    .string()
    .describe('`active`, or another word of those who run the service. It never changes what keys may read.'),
  createdAt: dateTime,
});

const Client = z.object({
  grantId: uuid.describe('The consent grant.'),
  kind: grantKind,
  professional: z.string().describe('Name of the professional.'),
  family: z.string().describe('Name of the family.'),
  since: dateTime.describe('When access began. Access that lies ahead is not listed.'),
  endsAt: dateTime.nullable().describe('When access ends or ended; may lie ahead of an active grant.'),
  status: z.enum(['active', 'ended']),
});

export const Roster = z.object({
  clients: z.array(Client).describe('All grants, ordered by `since`, then `grantId`.'),
  seats: z.object({
    members: count.describe('Active members.'),
    professionalsWithClients: count.describe('Professionals with an active grant, active members or not.'),
    activeFamilies: count.describe('Families with an active grant.'),
  }),
});

const RoleReference = z.object({ id: uuid, key: z.string(), name: z.string() });

export const Member = z.object({
  userId: z.string(),
  name: z.string(),
  email: z.string(),
  title: z.string().nullable(),
  status: z.enum(['invited', 'active', 'suspended']).describe('Members who left are not listed.'),
  roles: z.array(RoleReference).describe('Ordered by key.'),
});

export const Members = z.array(Member).describe('Ordered by name, then `userId`.');

const Metric = z.object({
  count: sum,
  of: sum,
  percent: z.number().min(0).max(100).nullable().describe('100·count/of, one decimal, half up; null when `of` is 0.'),
});

const withheldMetric = Metric.nullable().describe(
  `Null unless results are shown and at least ${outcomesMinimumFamilies} families contributed to \`of\`.`,
);

export const Outcomes = z.object({
  windowDays: z.literal(outcomesWindowDays).describe('The whole UTC days before today.'),
  families: count.describe('Client families counted.'),
  minimumFamilies: z.literal(outcomesMinimumFamilies).describe('The floor below which results are withheld.'),
  shown: z.boolean(),
  calmMessages: withheldMetric,
  exchangesOnTime: withheldMetric,
  expensesAnsweredIn14Days: withheldMetric,
});

export const ReferralCode = z.object({
  id: uuid,
  code: z.string(),
  link: z.string(),
  label: z.string().nullable(),
  active: z.boolean(),
  counts: z.object({
    signedUp: count.describe('All referrals of the code.'),
    qualified: count,
    notCounted: count,
  }),
});

export const ReferralCodes = z.array(ReferralCode).describe('Ordered by code.');

export const ReferralEarnings = z.object({
  months: z
    .array(
      z.object({
        month: z
          .string()
          .regex(/^\d{4}-\d{2}$/)
          .describe('For example `2026-09`.'),
        currency: z.string(),
        invoices: count,
        shareCents: z.int().meta({ format: 'int64' }).describe('The organization’s share, in minor currency units.'),
      }),
    )
    .describe('Sums only, ordered by month, then currency.'),
});

export const Role = z.object({
  id: uuid,
  key: z.string(),
  name: z.string(),
  description: z.string(),
  isSystem: z.boolean().describe('True for the roles every organization has.'),
  permissions: z.array(z.string()),
});

export const Roles = z.array(Role).describe('System roles in a fixed order, then own roles by name, then id.');

export const SeatCounts = z.object({
  total: sum.describe('Seats the organization has: paid and invoiced.'),
  used: count.describe('Seats that client families hold.'),
  paid: sum.describe('Seats of subscriptions that are active, trialing or past_due.'),
  invoiced: count,
  pricePerSeat: z.object({ currency: z.string(), cents: count }).nullable(),
  subscriptions: z
    .array(
      z.object({
        status: z.string(),
        quantity: count,
        renewsAt: dateTime.nullable(),
        cancelAtPeriodEnd: z.boolean(),
      }),
    )
    .describe('Ordered by `renewsAt` (null last), then by id.'),
});

export const SeatFamilies = z.object({
  seats: z
    .array(
      z.object({
        id: uuid,
        grantId: uuid,
        family: z.string(),
        professional: z.string(),
        kind: grantKind,
        givenAt: dateTime,
      }),
    )
    .describe('Families that hold a seat, ordered by `givenAt`, then id.'),
  eligible: z
    .array(z.object({ grantId: uuid, family: z.string(), professional: z.string(), kind: grantKind }))
    .describe('Active grants whose family holds no seat, ordered by family, professional, `grantId`.'),
  ended: z
    .array(z.object({ id: uuid, family: z.string(), endedAt: dateTime, reason: z.enum(seatEndReasons) }))
    .describe('Seats that ended, newest first, then by id.'),
});

export const ErrorBody = z.object({
  error: z.string().describe('A code; see the description of each status.'),
  message: z.string().optional(),
  requestId: z.string().optional().describe('Present on 500 and 503: quote it when asking for help.'),
});
