import { z } from 'zod';
import { type ClientRow, getClient, listEligibleClients } from '#domain/clients/list-clients.ts';
import { getSeatCounts } from '#domain/clients/list-seats.ts';
import { assignSeat } from '#domain/clients/seats.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { form, hiddenField } from '../../components/form.ts';
import { queryString } from '../../components/list-filter.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { table } from '../../components/table.ts';
import { displayName, truncate } from '../../components/text.ts';
import { type FormState, freshForm, getText } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientColumns, seatsAvailable, seatsBreadcrumbs, seatsInUse } from './cells.ts';

const eligiblePerPage = 50;

/** Which page the seat is assigned from, to return there. */
const fromField = z.enum(['list', 'client']).catch('client');

/** Assigns a seat to a client, from the list of clients without one or from the client's page. */
export const assignSeatRoutes = [
  member.view({
    name: 'showAssignSeat',
    path: '/clients/seats/assign',
    permission: 'org.seats.manage',
    query: z.object({ q: searchText, after: z.guid().nullable().catch(null) }),
    show: (visit, { q, after }) => assignPage(visit, q, after),
  }),

  ...member.formPage({
    pageName: 'confirmAssignSeat',
    name: 'assignSeat',
    path: '/clients/:grantId/seat',
    permission: 'org.seats.manage',
    query: z.object({ from: fromField }),
    values: ({ from }) => ({ from }),
    form: z.object({ from: fromField }),
    async act(visit, { from }) {
      const grantId = visit.params.grantId ?? '';
      await assignSeat(visit.console.database, { ...visit.request, grantId });
      return redirect(visit.at(from === 'list' ? '/clients/seats/assign' : `/clients/${grantId}`), {
        flash: 'Seat assigned.',
      });
    },
    render: confirmPage,
  }),
];

/** Renders the confirmation, which names the client and the event. */
async function confirmPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { database } = visit.console;
  const { grantId, family, professional } = await getClient(database, visit.organizationId, visit.params.grantId ?? '');
  const { free, total } = await getSeatCounts(database, visit.organizationId);
  const isFromList = getText(state, 'from') === 'list';
  return page({
    title: `Assign a seat to ${truncate(family, 60)}?`,
    breadcrumbs: seatsBreadcrumbs(visit),
    body: form(visit, {
      state,
      button: `Assign seat to ${truncate(family, 60)}`,
      cancel: visit.at(isFromList ? '/clients/seats/assign' : `/clients/${grantId}`),
      fields: html`
        ${hiddenField('from', isFromList ? 'list' : 'client')}
        <p>${displayName(family)} with ${displayName(professional)} gets one of ${free.toLocaleString('en')} available
          seats (${total.toLocaleString('en')} in total).</p>
        <p>Your webhooks receive <code>seat.given</code>. You can end the seat at any time.</p>`,
    }),
  });
}

async function assignPage(visit: MemberVisit, q: string, after: string | null): Promise<Page> {
  const { database } = visit.console;
  const { free, total } = await getSeatCounts(database, visit.organizationId);
  const { rows, next } = await listEligibleClients(database, visit.organizationId, q, after, eligiblePerPage);
  const here = visit.at('/clients/seats/assign');
  return page({
    title: 'Assign seat',
    breadcrumbs: seatsBreadcrumbs(visit),
    body: html`
      ${
        free === 0
          ? notice('warning', html`${seatsInUse(visit, total)} or add seats to your subscription.`)
          : html`<p>${seatsAvailable({ free, total })} Each client can have one seat.</p>`
      }
      ${searchForm({
        action: here,
        label: 'Search clients',
        clear: q === '' ? null : here,
        fields: searchField(freshForm({ q }), 'Client or professional'),
      })}
      ${
        rows.length === 0
          ? emptyList(q)
          : table<ClientRow>({
              caption: 'Clients without a seat',
              columns: clientColumns(visit),
              rows,
              actions: free > 0 ? (client) => assignLink(visit, client) : null,
            })
      }
      ${pager({ isFirst: after === null, older: next, href: (cursor) => here + queryString({ q, after: cursor }) })}`,
  });
}

function assignLink(visit: MemberVisit, { grantId, family, professional }: ClientRow): Html {
  const href = visit.at(`/clients/${grantId}/seat?from=list`);
  return html`<a class="button secondary outline" href="${href}">Assign seat…<span class="visually-hidden"> to ${family}
    with ${professional}</span></a>`;
}

const emptyList = (q: string): Html =>
  emptyState(
    q === ''
      ? { title: 'No clients without a seat', body: 'Every active client has a seat.' }
      : { title: 'No matching clients', body: 'Change or clear the search.' },
  );
