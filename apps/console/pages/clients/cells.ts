import type { ClientRow } from '#domain/clients/list-clients.ts';
import type { SeatCounts, SeatRow } from '#domain/clients/list-seats.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import type { Column } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { MissingPermissionError, type Page } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';

export const kindLabels = { attorney: 'Attorney', neutral: 'Neutral' } as const;

const seatEndLabels = {
  ended_by_organization: 'Ended by your organization',
  access_ended: 'Access ended',
  subscription_ended: 'Subscription ended',
} as const;

/**
 * Requires the permission for clients or for seats, because the role Billing manages seats without
 * access to the list of clients. @throws MissingPermissionError
 */
export function assertMaySeeSeats(visit: MemberVisit): void {
  if (!visit.may('org.clients.read') && !visit.may('org.seats.manage'))
    throw new MissingPermissionError('org.clients.read');
}

/** Returns the breadcrumb of the roster, for members who may see it. */
export const clientsBreadcrumbs = (visit: MemberVisit): Page['breadcrumbs'] =>
  visit.may('org.clients.read') ? [['Clients', visit.at('/clients')]] : [];

/** Returns the breadcrumbs of a page below the list of seats. */
export const seatsBreadcrumbs = (visit: MemberVisit): Page['breadcrumbs'] => [
  ['Seats', visit.at('/clients/seats')],
  ...clientsBreadcrumbs(visit),
];

/** States that no seat is available, and begins how to get one. */
export const seatsInUse = (visit: MemberVisit, total: number): Html =>
  html`All ${total.toLocaleString('en')} seats are in use. <a href="${visit.at('/clients/seats')}">End a seat</a>`;

export const seatsAvailable = ({ free, total }: Pick<SeatCounts, 'free' | 'total'>): string =>
  `${free.toLocaleString('en')} of ${total.toLocaleString('en')} seats available.`;

const commonColumns = (visit: MemberVisit): Column<ClientRow | SeatRow>[] => [
  {
    heading: 'Client',
    main: true,
    cell: ({ grantId, family }) => html`<a href="${visit.at(`/clients/${grantId}`)}">${displayName(family)}</a>`,
  },
  { heading: 'Professional', cell: ({ professional }) => displayName(professional) },
  { heading: 'Kind', whenNarrow: 'hidden', cell: ({ kind }) => kindLabels[kind] },
];

/** Returns the columns of the roster and of the clients without a seat. */
export const clientColumns = (visit: MemberVisit): Column<ClientRow>[] => [
  ...commonColumns(visit),
  { heading: 'Since', cell: ({ since }) => time(since) },
];

export const seatColumns = (visit: MemberVisit): Column<SeatRow>[] => [
  ...commonColumns(visit),
  { heading: 'Assigned', cell: ({ givenAt }) => time(givenAt) },
];

/** The end of a seat, for lists of past seats. */
export const seatEndColumns: readonly Column<SeatRow>[] = [
  { heading: 'Ended', cell: ({ endedAt }) => time(endedAt) },
  { heading: 'Reason', cell: ({ endReason }) => (endReason === null ? '' : seatEndLabels[endReason]) },
];
