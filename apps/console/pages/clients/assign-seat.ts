import { z } from 'zod';
import { type ClientRow, getClient, listEligibleClients } from '#domain/organization/list-clients.ts';
import { getSeatCounts } from '#domain/organization/list-seats.ts';
import { assignSeat } from '#domain/organization/seats.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { emptyState } from '../../components/empty-state.ts';
import { form, hiddenField, textField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { searchForm, searchText } from '../../components/search-form.ts';
import { table } from '../../components/table.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, textOf } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientColumns, clientsBreadcrumbs } from './cells.ts';

const eligiblePerPage = 50;

/** Which page the seat is assigned from, to return there. */
const fromField = z.enum(['list', 'client']).catch('client');

/** Assigns a seat to a client, from the list of clients without one or from the client's page. */
export const assignSeatRoutes = [
  member.view({
    name: 'showAssignSeat',
    path: '/clients/seats/assign',
    permission: 'org.seats.manage',
    query: z.object({ q: searchText, after: z.uuid().nullable().catch(null) }),
    show: (visit, { q, after }) => assignPage(visit, q, after),
  }),

  member.view({
    name: 'confirmAssignSeat',
    path: '/clients/:grantId/seat',
    permission: 'org.seats.manage',
    query: z.object({ from: fromField }),
    show: (visit, { from }) => confirmPage(visit, freshForm({ from })),
  }),

  member.action({
    name: 'assignSeat',
    path: '/clients/:grantId/seat',
    permission: 'org.seats.manage',
    form: z.object({ from: fromField }),
    async act(visit, { from }) {
      const grantId = visit.params.grantId ?? '';
      await assignSeat(visit.console.em, { organizationId: visit.organization.organizationId, grantId, by: visit.by });
      return redirect(visit.at(from === 'list' ? '/clients/seats/assign' : `/clients/${grantId}`), {
        flash: 'Seat assigned.',
      });
    },
    redraw: confirmPage,
  }),
];

/** Names the client and what the seat causes, and asks for confirmation. */
async function confirmPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em } = visit.console;
  const { organizationId } = visit.organization;
  const { grantId, family, professional } = await getClient(em, organizationId, visit.params.grantId ?? '');
  const { free, total } = await getSeatCounts(em, organizationId);
  const isFromList = textOf(state, 'from') === 'list';
  return page({
    title: `Assign a seat to ${truncate(family, 60)}?`,
    breadcrumbs: [['Seats', visit.at('/clients/seats')], ...clientsBreadcrumbs(visit)],
    body: form(visit, {
      action: visit.at(`/clients/${grantId}/seat`),
      state,
      button: `Assign seat to ${truncate(family, 60)}`,
      secondary: html`<a href="${visit.at(isFromList ? '/clients/seats/assign' : `/clients/${grantId}`)}">Cancel</a>`,
      fields: html`
        ${hiddenField('from', isFromList ? 'list' : 'client')}
        <p>${displayName(family)} with ${displayName(professional)} gets one of ${free.toLocaleString('en')} available
          seats (${total.toLocaleString('en')} in total).</p>
        <p>Your webhooks receive <code>seat.given</code>. You can end the seat at any time.</p>`,
    }),
  });
}

async function assignPage(visit: MemberVisit, q: string, after: string | null): Promise<Page> {
  const { em } = visit.console;
  const { organizationId } = visit.organization;
  const { free, total } = await getSeatCounts(em, organizationId);
  const { rows, next } = await listEligibleClients(em, organizationId, q, after, eligiblePerPage);
  const here = visit.at('/clients/seats/assign');
  const href = (cursor: string | null) => hrefOf(here, q, cursor);
  return page({
    title: 'Assign seat',
    breadcrumbs: [['Seats', visit.at('/clients/seats')], ...clientsBreadcrumbs(visit)],
    body: html`
      ${
        free === 0
          ? notice(
              'warning',
              html`All ${total.toLocaleString('en')} seats are in use.
        <a href="${visit.at('/clients/seats')}">End a seat</a> or add seats to your
        subscription.`,
            )
          : html`<p>${free.toLocaleString('en')} of ${total.toLocaleString('en')} seats available. Each
          client can have one seat.</p>`
      }
      ${searchForm({
        action: here,
        label: 'Search clients',
        clear: q === '' ? null : here,
        fields: textField(freshForm({ q }), {
          name: 'q',
          label: 'Client or professional',
          type: 'search',
          required: false,
          maxLength: 200,
        }),
      })}
      ${
        rows.length === 0
          ? emptyList(q)
          : table<ClientRow>({
              caption: 'Clients without a seat',
              columns: clientColumns(visit),
              rows,
              ...(free > 0 ? { actions: (client: ClientRow) => assignLink(visit, client) } : {}),
            })
      }
      ${pager({ newer: null, older: next, href, ...(after === null ? {} : { firstHref: href(null) }) })}`,
  });
}

const assignLink = (visit: MemberVisit, { grantId, family, professional }: ClientRow): Html =>
  html`<a class="button secondary outline" href="${visit.at(
    `/clients/${grantId}/seat?from=list`,
  )}">Assign seat…<span class="visually-hidden"> to ${family} with ${professional}</span></a>`;

const emptyList = (q: string): Html =>
  emptyState(
    q === ''
      ? {
          title: 'No clients without a seat',
          body: 'Every active client has a seat.',
        }
      : { title: 'No matching clients', body: 'Change or clear the search.' },
  );

function hrefOf(here: string, q: string, after: string | null): string {
  const search = new URLSearchParams();
  if (q !== '') search.set('q', q);
  if (after !== null) search.set('after', after);
  return search.size === 0 ? here : `${here}?${search}`;
}
