import type { z } from 'zod';
import {
  Members,
  Organization,
  Outcomes,
  ReferralCodes,
  ReferralEarnings,
  Roles,
  Roster,
  SeatCounts,
  SeatFamilies,
} from '#domain/contract/resources.ts';
import { type BodySql, smallStatement } from './reads/authorized.ts';
import { membersSql } from './reads/members.ts';
import { organizationSql } from './reads/organization.ts';
import { outcomesSql } from './reads/outcomes.ts';
import { referralCodesSql, referralEarningsSql } from './reads/referrals.ts';
import { rolesSql } from './reads/roles.ts';
import { rosterSql } from './reads/roster.ts';
import { seatCountsSql, seatFamiliesSql } from './reads/seats.ts';

/**
 * The declaration of one read: the route, the OpenAPI operation and the statements come from it.
 */
interface EndpointDeclaration extends BodySql {
  /**
   * The operation's id in the OpenAPI document, the statement's name and, after `api.`, the
   * audit log's action.
   */
  operationId: string;
  /** What follows `/v1/orgs/:orgId`: empty or `/…`. */
  resource: string;
  /** One line for the list of operations. */
  summary: string;
  /** What the body contains and what it omits. */
  description: string;
  /** The body of a 200, for OpenAPI and tests; in production PostgreSQL's JSON passes through. */
  response: z.ZodType;
}

export interface Endpoint extends EndpointDeclaration {
  /** Key, creator, scope and body in one statement; see `authorized.ts`. */
  statement: { name: string; text: string };
}

function endpoint(declaration: EndpointDeclaration): Endpoint {
  return { ...declaration, statement: { name: declaration.operationId, text: smallStatement(declaration) } };
}

/** The organization’s record. */
export const getOrg = endpoint({
  operationId: 'getOrg',
  resource: '',
  scope: 'org.read',
  summary: 'The organization’s record',
  description: 'The organization’s own record: its name, slug, kind, status and when it was created.',
  response: Organization,
  body: organizationSql,
  lists: [],
});

/** The roster of client families. */
export const getFirmRoster = endpoint({
  operationId: 'getFirmRoster',
  resource: '/clients',
  scope: 'org.clients.read',
  summary: 'The roster of client families',
  description:
    'Which families gave the organization’s professionals access and since when: names and dates ' +
    'only, never what a family writes, files, pays or records. The list is complete.',
  response: Roster,
  body: rosterSql,
  lists: ['client_grant'],
});

const listMembers = endpoint({
  operationId: 'listMembers',
  resource: '/members',
  scope: 'org.members.read',
  summary: 'Members and their roles',
  description: 'Everyone who has not left the organization, with the roles they hold. The list is complete.',
  response: Members,
  body: membersSql,
  lists: ['member'],
});

const getFirmOutcomes = endpoint({
  operationId: 'getFirmOutcomes',
  resource: '/outcomes',
  scope: 'org.analytics.read',
  summary: 'De-identified outcomes over 90 days',
  description:
    'Outcomes across all client families together over the 90 whole UTC days before today. ' +
    'Nothing is reported for fewer than 5 families, and no metric to which fewer than 5 ' +
    'contributed.',
  response: Outcomes,
  body: outcomesSql,
  lists: [],
});

/** Referral codes with counts. */
export const listOrgReferralCodes = endpoint({
  operationId: 'listOrgReferralCodes',
  resource: '/referral-codes',
  scope: 'org.referrals.manage',
  summary: 'Referral codes with counts',
  description: 'The organization’s referral codes and how many referrals each brought. The list is complete.',
  response: ReferralCodes,
  body: referralCodesSql,
  lists: ['referral_code'],
});

const getOrgReferralEarnings = endpoint({
  operationId: 'getOrgReferralEarnings',
  resource: '/referral-earnings',
  scope: 'org.referrals.manage',
  summary: 'Referral earnings by month',
  description: 'The organization’s share of referred invoices, summed per month and currency. Only sums are given.',
  response: ReferralEarnings,
  body: referralEarningsSql,
  lists: [],
});

const listRoles = endpoint({
  operationId: 'listRoles',
  resource: '/roles',
  scope: 'org.roles.read',
  summary: 'System roles and own roles',
  description: 'The roles every organization has, and the organization’s own, with the permissions each gives.',
  response: Roles,
  body: rolesSql,
  lists: [],
});

const getOrgSeats = endpoint({
  operationId: 'getOrgSeats',
  resource: '/seats',
  scope: 'org.billing.manage',
  summary: 'Seat counts and subscriptions',
  description: 'How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.',
  response: SeatCounts,
  body: seatCountsSql,
  lists: [],
});

const getOrgSeatFamilies = endpoint({
  operationId: 'getOrgSeatFamilies',
  resource: '/seats/families',
  scope: 'org.clients.read',
  summary: 'Client families and seats',
  description:
    'Which client families have a seat, which could have one and which had one; names only. The lists are complete.',
  response: SeatFamilies,
  body: seatFamiliesSql,
  lists: ['client_grant', 'seat'],
});

/** The nine reads, in the order in which they are documented. */
export const endpoints: readonly Endpoint[] = [
  getOrg,
  getFirmRoster,
  listMembers,
  getFirmOutcomes,
  listOrgReferralCodes,
  getOrgReferralEarnings,
  listRoles,
  getOrgSeats,
  getOrgSeatFamilies,
];
