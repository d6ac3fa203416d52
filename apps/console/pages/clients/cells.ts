import type { ClientRow } from '#domain/organization/list-clients.ts';
import type { SeatRow } from '#domain/organization/list-seats.ts';
import { displayName } from '../../components/display-name.ts';
import type { Column } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Page, PermissionNeeded } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

export const kindWords = { attorney: 'Attorney', neutral: 'Neutral' } as const;

/** Why a seat ended, for people. */
export const seatEndWords = {
  ended_by_organization: 'Ended by your organization',
  access_ended: 'Access ended',
  subscription_ended: 'Subscription ended',
} as const;

/**
 * Lets people who manage seats (the role Billing) see the clients concerned, even when they may not
 * see the roster. @throws PermissionNeeded
 */
export function assertMaySeeSeats(visit: MemberVisit): void {
  if (!visit.may('org.clients.read') && !visit.may('org.seats.manage')) throw new PermissionNeeded('org.clients.read');
}

/** Returns the breadcrumb of the roster, for members who may see it. */
export const clientsBreadcrumbs = (visit: MemberVisit): Page['breadcrumbs'] =>
  visit.may('org.clients.read') ? [['Clients', visit.at('/clients')]] : [];

/** Returns the columns of the roster and of the clients without a seat. */
export const clientColumns = (visit: MemberVisit): Column<ClientRow>[] => [
  {
    heading: 'Client',
    main: true,
    cell: ({ grantId, family }) => html`<a href="${visit.at(`/clients/${grantId}`)}">${displayName(family)}</a>`,
  },
  { heading: 'Professional', cell: ({ professional }) => displayName(professional) },
  { heading: 'Kind', whenNarrow: 'hidden', cell: ({ kind }) => kindWords[kind] },
  { heading: 'Since', cell: ({ since }) => time(since) },
];

/** Returns the columns of every list of seats. */
export const seatColumns = (visit: MemberVisit): Column<SeatRow>[] => [
  {
    heading: 'Client',
    main: true,
    cell: ({ grantId, family }) => html`<a href="${visit.at(`/clients/${grantId}`)}">${displayName(family)}</a>`,
  },
  { heading: 'Professional', cell: ({ professional }) => displayName(professional) },
  { heading: 'Kind', whenNarrow: 'hidden', cell: ({ kind }) => kindWords[kind] },
  { heading: 'Assigned', cell: ({ givenAt }) => time(givenAt) },
];
