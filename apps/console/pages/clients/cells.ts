import type { ClientRow } from '#domain/organization/list-clients.ts';
import type { SeatRow } from '#domain/organization/list-seats.ts';
import { displayName } from '../../components/display-name.ts';
import type { Column } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Page, PermissionNeeded } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

export const kindWords = { attorney: 'Attorney', neutral: 'Neutral' } as const;

/** Why a seat ended. */
export const seatEndWords = {
  ended_by_organization: 'you ended it',
  access_ended: 'the access ended',
  subscription_ended: 'the subscription ended',
} as const;

/**
 * Seats are given and ended by people who need not see the roster (the role Billing): they may see
 * the families whom it is about. @throws PermissionNeeded
 */
export function assertMaySeeSeats(visit: MemberVisit): void {
  if (!visit.may('org.clients.read') && !visit.may('org.seats.manage')) throw new PermissionNeeded('org.clients.read');
}

/** The roster above a page, for whoever may see it. */
export const clientsBreadcrumbs = (visit: MemberVisit): Page['breadcrumbs'] =>
  visit.may('org.clients.read') ? [['Clients', visit.at('/clients')]] : [];

/** The columns of the roster, and of the families that could have a seat. */
export const clientColumns = (visit: MemberVisit): Column<ClientRow>[] => [
  {
    heading: 'Family',
    main: true,
    cell: ({ grantId, family }) => html`<a href="${visit.at(`/clients/${grantId}`)}">${displayName(family)}</a>`,
  },
  { heading: 'Professional', cell: ({ professional }) => displayName(professional) },
  { heading: 'Kind', cell: ({ kind }) => kindWords[kind] },
  { heading: 'Since', cell: ({ since }) => time(since) },
];

/** The columns that every list of seats has. */
export const seatColumns = (visit: MemberVisit): Column<SeatRow>[] => [
  {
    heading: 'Family',
    main: true,
    cell: ({ grantId, family }) => html`<a href="${visit.at(`/clients/${grantId}`)}">${displayName(family)}</a>`,
  },
  { heading: 'Professional', cell: ({ professional }) => displayName(professional) },
  { heading: 'Kind', cell: ({ kind }) => kindWords[kind] },
  { heading: 'Given', cell: ({ givenAt }) => time(givenAt) },
];
