// Generated from apps/api/openapi/openapi.json by `npm run tool -- clients`. Do not edit.
// SHA-256 of what it contains of the document: 2e9c55836ad89c14727622daf808df3a9381dd47fb1588c50bd79da766c6375a
// SHA-256 of its generator: 0ade03d33278411bd4c4eec076c820cc870aab90046a9d355bc3dd37b3529eee
import type { ApiResponse, CallOptions } from './response.ts';

interface components {
    schemas: {
        Organization: {
            /** Format: uuid */
            id: string;
            name: string;
            slug: string;
            /** @enum {string} */
            kind: "direct" | "law_firm" | "mediation" | "legal_aid" | "court" | "nonprofit" | "other" | (string & {});
            /** @description `active`, or another word of those who run the service. It never changes what keys may read. */
            status: string;
            /**
             * Format: date-time
             * @description ISO 8601, UTC, milliseconds, ending in Z.
             */
            createdAt: string;
        };
        Roster: {
            /** @description All grants, ordered by `since`, then `grantId`. */
            clients: components["schemas"]["RosterClient"][];
            seats: {
                /**
                 * Format: int32
                 * @description Active members.
                 */
                members: number;
                /**
                 * Format: int32
                 * @description Professionals with an active grant, active members or not.
                 */
                professionalsWithClients: number;
                /**
                 * Format: int32
                 * @description Families with an active grant.
                 */
                activeFamilies: number;
            };
        };
        RosterClient: {
            /**
             * Format: uuid
             * @description The consent grant.
             */
            grantId: string;
            /** @enum {string} */
            kind: "attorney" | "neutral" | (string & {});
            /** @description Name of the professional. */
            professional: string;
            /** @description Name of the family. */
            family: string;
            /**
             * Format: date-time
             * @description When access began. Access that lies ahead is not listed.
             */
            since: string;
            /**
             * Format: date-time
             * @description When access ends or ended; may lie ahead of an active grant.
             */
            endsAt: string | null;
            /** @enum {string} */
            status: "active" | "ended" | (string & {});
        };
        /** @description Ordered by name, then `userId`. */
        Members: components["schemas"]["Member"][];
        Member: {
            userId: string;
            name: string;
            email: string;
            title: string | null;
            /**
             * @description Members who left are not listed.
             * @enum {string}
             */
            status: "invited" | "active" | "suspended" | (string & {});
            /** @description Ordered by key. */
            roles: components["schemas"]["RoleReference"][];
        };
        RoleReference: {
            /** Format: uuid */
            id: string;
            key: string;
            name: string;
        };
        Outcomes: {
            /**
             * @description The whole UTC days before today.
             * @constant
             */
            windowDays: 90;
            /**
             * Format: int32
             * @description Client families counted.
             */
            families: number;
            /**
             * @description The floor below which results are withheld.
             * @constant
             */
            minimumFamilies: 5;
            shown: boolean;
            /** @description Null unless results are shown and at least 5 families contributed to `of`. */
            calmMessages: components["schemas"]["Metric"] | null;
            /** @description Null unless results are shown and at least 5 families contributed to `of`. */
            exchangesOnTime: components["schemas"]["Metric"] | null;
            /** @description Null unless results are shown and at least 5 families contributed to `of`. */
            expensesAnsweredIn14Days: components["schemas"]["Metric"] | null;
        };
        Metric: {
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            of: number;
            /** @description 100·count/of, one decimal, half up; null when `of` is 0. */
            percent: number | null;
        };
        /** @description Ordered by code. */
        ReferralCodes: components["schemas"]["ReferralCode"][];
        ReferralCode: {
            /** Format: uuid */
            id: string;
            code: string;
            link: string;
            label: string | null;
            active: boolean;
            counts: {
                /**
                 * Format: int32
                 * @description All referrals of the code.
                 */
                signedUp: number;
                /** Format: int32 */
                qualified: number;
                /** Format: int32 */
                notCounted: number;
            };
        };
        ReferralEarnings: {
            /** @description Sums only, ordered by month, then currency. */
            months: components["schemas"]["MonthlyEarnings"][];
        };
        MonthlyEarnings: {
            /** @description For example `2026-09`. */
            month: string;
            currency: string;
            /** Format: int32 */
            invoices: number;
            /**
             * Format: int64
             * @description The organization’s share, in minor currency units.
             */
            shareCents: number;
        };
        /** @description System roles in a fixed order, then own roles by name, then id. */
        Roles: components["schemas"]["Role"][];
        Role: {
            /** Format: uuid */
            id: string;
            key: string;
            name: string;
            description: string;
            /** @description True for the roles every organization has. */
            isSystem: boolean;
            permissions: string[];
        };
        SeatCounts: {
            /**
             * Format: int64
             * @description Seats the organization has: paid and invoiced.
             */
            total: number;
            /**
             * Format: int32
             * @description Seats that client families hold.
             */
            used: number;
            /**
             * Format: int64
             * @description Seats of subscriptions that are active, trialing or past_due.
             */
            paid: number;
            /** Format: int32 */
            invoiced: number;
            pricePerSeat: {
                currency: string;
                /** Format: int32 */
                cents: number;
            } | null;
            /** @description Ordered by `renewsAt` (null last), then by id. */
            subscriptions: components["schemas"]["SeatSubscription"][];
        };
        SeatSubscription: {
            status: string;
            /** Format: int32 */
            quantity: number;
            /**
             * Format: date-time
             * @description ISO 8601, UTC, milliseconds, ending in Z.
             */
            renewsAt: string | null;
            cancelAtPeriodEnd: boolean;
        };
        SeatFamilies: {
            /** @description Families that hold a seat, ordered by `givenAt`, then id. */
            seats: components["schemas"]["HeldSeat"][];
            /** @description Active grants whose family holds no seat, ordered by family, professional, `grantId`. */
            eligible: components["schemas"]["EligibleFamily"][];
            /** @description Seats that ended, newest first, then by id. */
            ended: components["schemas"]["EndedSeat"][];
        };
        HeldSeat: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            grantId: string;
            family: string;
            professional: string;
            /** @enum {string} */
            kind: "attorney" | "neutral" | (string & {});
            /**
             * Format: date-time
             * @description ISO 8601, UTC, milliseconds, ending in Z.
             */
            givenAt: string;
        };
        EligibleFamily: {
            /** Format: uuid */
            grantId: string;
            family: string;
            professional: string;
            /** @enum {string} */
            kind: "attorney" | "neutral" | (string & {});
        };
        EndedSeat: {
            /** Format: uuid */
            id: string;
            family: string;
            /**
             * Format: date-time
             * @description ISO 8601, UTC, milliseconds, ending in Z.
             */
            endedAt: string;
            /** @enum {string} */
            reason: "ended_by_organization" | "access_ended" | "subscription_ended" | (string & {});
        };
        ErrorBody: {
            /** @description A code; see the description of each status. */
            error: string;
            message?: string;
            /** @description Present on 500 and 503: quote it when asking for help. */
            requestId?: string;
        };
        /** ClientStartedEvent */
        ClientStartedEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "client.started";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description The consent grant, as in the roster.
                 */
                grantId: string;
                /**
                 * @description How the professional works with the family.
                 * @enum {string}
                 */
                kind: "attorney" | "neutral" | (string & {});
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** ClientEndedEvent */
        ClientEndedEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "client.ended";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description The consent grant, as in the roster.
                 */
                grantId: string;
                /**
                 * @description How the professional works with the family.
                 * @enum {string}
                 */
                kind: "attorney" | "neutral" | (string & {});
                /**
                 * @description `ended`: access ended; `moved`: the professional moved the work out.
                 * @enum {string}
                 */
                reason: "ended" | "moved" | (string & {});
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** SeatGivenEvent */
        SeatGivenEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "seat.given";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description The `id` of the seat in `getOrgSeatFamilies`.
                 */
                seatId: string;
                /**
                 * Format: uuid
                 * @description The consent grant, as in the roster.
                 */
                grantId: string;
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** SeatEndedEvent */
        SeatEndedEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "seat.ended";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description The `id` of the seat in `getOrgSeatFamilies`.
                 */
                seatId: string;
                /**
                 * Format: uuid
                 * @description The consent grant, as in the roster.
                 */
                grantId: string;
                /** @enum {string} */
                reason: "ended_by_organization" | "access_ended" | "subscription_ended" | (string & {});
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** WebhookFailingEvent */
        WebhookFailingEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "webhook.failing";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description Another webhook of the organization.
                 */
                webhookId: string;
                /**
                 * Format: date-time
                 * @description Since when nothing was accepted.
                 */
                failingSince: string;
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** WebhookSuspendedEvent */
        WebhookSuspendedEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "webhook.suspended";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description Another webhook of the organization.
                 */
                webhookId: string;
                /** Format: date-time */
                suspendedAt: string;
                /**
                 * @description `failures`: its receiver accepted nothing for days; `gone`: it answered 410.
                 * @enum {string}
                 */
                reason: "failures" | "gone" | (string & {});
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
        /** KeyExpiringEvent */
        KeyExpiringEvent: {
            /**
             * Format: uuid
             * @description Identical on every retry, so that a repeat can be ignored.
             */
            id: string;
            /** @constant */
            type: "key.expiring";
            /**
             * Format: date-time
             * @description When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
             */
            createdAt: string;
            organization: {
                /** Format: uuid */
                id: string;
            };
            data: {
                /**
                 * Format: uuid
                 * @description The key, as in the console.
                 */
                keyId: string;
                /** @description Its beginning. */
                keyPrefix: string;
                /** Format: date-time */
                expiresAt: string;
            };
            /**
             * @description Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
             * @constant
             */
            test?: true;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Organization = components['schemas']['Organization'];
export type Roster = components['schemas']['Roster'];
export type RosterClient = components['schemas']['RosterClient'];
export type Members = components['schemas']['Members'];
export type Member = components['schemas']['Member'];
export type RoleReference = components['schemas']['RoleReference'];
export type Outcomes = components['schemas']['Outcomes'];
export type Metric = components['schemas']['Metric'];
export type ReferralCodes = components['schemas']['ReferralCodes'];
export type ReferralCode = components['schemas']['ReferralCode'];
export type ReferralEarnings = components['schemas']['ReferralEarnings'];
export type MonthlyEarnings = components['schemas']['MonthlyEarnings'];
export type Roles = components['schemas']['Roles'];
export type Role = components['schemas']['Role'];
export type SeatCounts = components['schemas']['SeatCounts'];
export type SeatSubscription = components['schemas']['SeatSubscription'];
export type SeatFamilies = components['schemas']['SeatFamilies'];
export type HeldSeat = components['schemas']['HeldSeat'];
export type EligibleFamily = components['schemas']['EligibleFamily'];
export type EndedSeat = components['schemas']['EndedSeat'];
export type ErrorBody = components['schemas']['ErrorBody'];
export type ClientStartedEvent = components['schemas']['ClientStartedEvent'];
export type ClientEndedEvent = components['schemas']['ClientEndedEvent'];
export type SeatGivenEvent = components['schemas']['SeatGivenEvent'];
export type SeatEndedEvent = components['schemas']['SeatEndedEvent'];
export type WebhookFailingEvent = components['schemas']['WebhookFailingEvent'];
export type WebhookSuspendedEvent = components['schemas']['WebhookSuspendedEvent'];
export type KeyExpiringEvent = components['schemas']['KeyExpiringEvent'];

/** The version of this package. */
export const clientVersion = "1.0.0";

/** The server of each region, by the prefix of its keys (`aln_us_`). */
export const servers = {
  "us": "https://us.org-api.example",
  "ca": "https://ca.org-api.example"
} as const;

/** The codes that the server sends in `error`. */
export type ErrorCode =
  | "invalid_request"
  | "unauthenticated"
  | "invalid_api_key"
  | "address_not_allowed"
  | "insufficient_scope"
  | "forbidden"
  | "api_key_not_accepted"
  | "not_found"
  | "rate_limited"
  | "internal"
  | "unavailable";

/** The body of a webhook's delivery. */
export type WebhookEvent =
  | ClientStartedEvent
  | ClientEndedEvent
  | SeatGivenEvent
  | SeatEndedEvent
  | WebhookFailingEvent
  | WebhookSuspendedEvent
  | KeyExpiringEvent;

type Unchanged = CallOptions & { ifNoneMatch: string };

/** The reads, by the names of their operations. */
export abstract class Reads {
  protected abstract read<T>(path: string, organizationId: string, options: CallOptions): Promise<ApiResponse<T>>;

  /**
   * The organization’s record.
   *
   * The organization’s own record: its name, slug, kind, status and when it was created.
   *
   * The key needs the scope `org.read`.
   */
  getOrg(organizationId: string, options: Unchanged): Promise<ApiResponse<Organization | null>>;
  getOrg(organizationId: string, options?: CallOptions): Promise<ApiResponse<Organization>>;
  getOrg(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<Organization | null>> {
    return this.read<Organization | null>("/v1/orgs/{orgId}", organizationId, options);
  }

  /**
   * The roster of client families.
   *
   * Which families gave the organization’s professionals access and since when: names and dates only, never what a family writes, files, pays or records. The list is complete.
   *
   * The key needs the scope `org.clients.read`.
   */
  getFirmRoster(organizationId: string, options: Unchanged): Promise<ApiResponse<Roster | null>>;
  getFirmRoster(organizationId: string, options?: CallOptions): Promise<ApiResponse<Roster>>;
  getFirmRoster(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<Roster | null>> {
    return this.read<Roster | null>("/v1/orgs/{orgId}/clients", organizationId, options);
  }

  /**
   * Members and their roles.
   *
   * Everyone who has not left the organization, with the roles they hold. The list is complete.
   *
   * The key needs the scope `org.members.read`.
   */
  listMembers(organizationId: string, options: Unchanged): Promise<ApiResponse<Members | null>>;
  listMembers(organizationId: string, options?: CallOptions): Promise<ApiResponse<Members>>;
  listMembers(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<Members | null>> {
    return this.read<Members | null>("/v1/orgs/{orgId}/members", organizationId, options);
  }

  /**
   * De-identified outcomes over 90 days.
   *
   * Outcomes across all client families together over the 90 whole UTC days before today. Nothing is reported for fewer than 5 families, and no metric to which fewer than 5 contributed.
   *
   * The key needs the scope `org.analytics.read`.
   */
  getFirmOutcomes(organizationId: string, options: Unchanged): Promise<ApiResponse<Outcomes | null>>;
  getFirmOutcomes(organizationId: string, options?: CallOptions): Promise<ApiResponse<Outcomes>>;
  getFirmOutcomes(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<Outcomes | null>> {
    return this.read<Outcomes | null>("/v1/orgs/{orgId}/outcomes", organizationId, options);
  }

  /**
   * Referral codes with counts.
   *
   * The organization’s referral codes and how many referrals each brought. The list is complete.
   *
   * The key needs the scope `org.referrals.manage`.
   */
  listOrgReferralCodes(organizationId: string, options: Unchanged): Promise<ApiResponse<ReferralCodes | null>>;
  listOrgReferralCodes(organizationId: string, options?: CallOptions): Promise<ApiResponse<ReferralCodes>>;
  listOrgReferralCodes(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<ReferralCodes | null>> {
    return this.read<ReferralCodes | null>("/v1/orgs/{orgId}/referral-codes", organizationId, options);
  }

  /**
   * Referral earnings by month.
   *
   * The organization’s share of referred invoices, summed per month and currency. Only sums are given.
   *
   * The key needs the scope `org.referrals.manage`.
   */
  getOrgReferralEarnings(organizationId: string, options: Unchanged): Promise<ApiResponse<ReferralEarnings | null>>;
  getOrgReferralEarnings(organizationId: string, options?: CallOptions): Promise<ApiResponse<ReferralEarnings>>;
  getOrgReferralEarnings(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<ReferralEarnings | null>> {
    return this.read<ReferralEarnings | null>("/v1/orgs/{orgId}/referral-earnings", organizationId, options);
  }

  /**
   * System roles and own roles.
   *
   * The roles every organization has, and the organization’s own, with the permissions each gives.
   *
   * The key needs the scope `org.roles.read`.
   */
  listRoles(organizationId: string, options: Unchanged): Promise<ApiResponse<Roles | null>>;
  listRoles(organizationId: string, options?: CallOptions): Promise<ApiResponse<Roles>>;
  listRoles(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<Roles | null>> {
    return this.read<Roles | null>("/v1/orgs/{orgId}/roles", organizationId, options);
  }

  /**
   * Seat counts and subscriptions.
   *
   * How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.
   *
   * The key needs the scope `org.billing.manage`.
   */
  getOrgSeats(organizationId: string, options: Unchanged): Promise<ApiResponse<SeatCounts | null>>;
  getOrgSeats(organizationId: string, options?: CallOptions): Promise<ApiResponse<SeatCounts>>;
  getOrgSeats(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<SeatCounts | null>> {
    return this.read<SeatCounts | null>("/v1/orgs/{orgId}/seats", organizationId, options);
  }

  /**
   * Client families and seats.
   *
   * Which client families have a seat, which could have one and which had one; names only. The lists are complete.
   *
   * The key needs the scope `org.clients.read`.
   */
  getOrgSeatFamilies(organizationId: string, options: Unchanged): Promise<ApiResponse<SeatFamilies | null>>;
  getOrgSeatFamilies(organizationId: string, options?: CallOptions): Promise<ApiResponse<SeatFamilies>>;
  getOrgSeatFamilies(organizationId: string, options: CallOptions = {}): Promise<ApiResponse<SeatFamilies | null>> {
    return this.read<SeatFamilies | null>("/v1/orgs/{orgId}/seats/families", organizationId, options);
  }
}
