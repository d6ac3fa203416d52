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
import type { Scope } from '#domain/contract/scopes.ts';
import { authorized, authorizedInChunks } from '#domain/db/statements/authorized.ts';
import { membersSql } from '#domain/db/statements/members.ts';
import { organizationSql } from '#domain/db/statements/organization.ts';
import { outcomesSql } from '#domain/db/statements/outcomes.ts';
import { referralCodesSql, referralEarningsSql } from '#domain/db/statements/referrals.ts';
import { rolesSql } from '#domain/db/statements/roles.ts';
import { rosterSql } from '#domain/db/statements/roster.ts';
import { seatCountsSql, seatFamiliesSql } from '#domain/db/statements/seats.ts';

/**
 * The declaration of one read: the route, the OpenAPI operation and the one statement come from it.
 */
interface EndpointDeclaration {
  /**
   * The operation's id in the OpenAPI document, the statement's name and, after `api.`, the
   * activity log's action.
   */
  operationId: string;
  /** What follows `/v1/orgs/:orgId`: empty or `/…`. */
  resource: string;
  scope: Scope;
  /** One line for the list of operations. */
  summary: string;
  /** What the answer contains and what it omits. */
  description: string;
  /**
   * The 200 answer, for the OpenAPI document and for tests; in production PostgreSQL's JSON passes
   * through.
   */
  response: z.ZodType;
  /** SQL of the answer's JSON; `$2` is the organization. */
  body: string;
}

export interface Endpoint extends EndpointDeclaration {
  /** The whole statement: key, owner, scope and answer. Values: fingerprints, organization. */
  statement: { name: string; text: string };
  /** The same for a large answer, which arrives in chunks. */
  chunkStatement: { name: string; text: string };
}

/** Declares a read. */
function endpoint(declaration: EndpointDeclaration): Endpoint {
  return {
    ...declaration,
    statement: { name: declaration.operationId, text: authorized(declaration.scope, declaration.body) },
    chunkStatement: {
      name: `${declaration.operationId}InChunks`,
      text: authorizedInChunks(declaration.scope, declaration.body),
    },
  };
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
});

const listMembers = endpoint({
  operationId: 'listMembers',
  resource: '/members',
  scope: 'org.members.read',
  summary: 'Members and their roles',
  description: 'Everyone who has not left the organization, with the roles they hold. The list is complete.',
  response: Members,
  body: membersSql,
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
});

const getOrgReferralEarnings = endpoint({
  operationId: 'getOrgReferralEarnings',
  resource: '/referral-earnings',
  scope: 'org.referrals.manage',
  summary: 'Referral earnings by month',
  description: 'The organization’s share of referred invoices, summed per month and currency. Only sums are given.',
  response: ReferralEarnings,
  body: referralEarningsSql,
});

const listRoles = endpoint({
  operationId: 'listRoles',
  resource: '/roles',
  scope: 'org.roles.read',
  summary: 'System roles and own roles',
  description: 'The roles every organization has, and the organization’s own, with the permissions each gives.',
  response: Roles,
  body: rolesSql,
});

const getOrgSeats = endpoint({
  operationId: 'getOrgSeats',
  resource: '/seats',
  scope: 'org.billing.manage',
  summary: 'Seat counts and subscriptions',
  description: 'How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.',
  response: SeatCounts,
  body: seatCountsSql,
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
