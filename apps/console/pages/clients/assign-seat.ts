import { z } from 'zod';
import { type ClientRow, listEligibleClients } from '#domain/organization/list-clients.ts';
import { getSeatCounts } from '#domain/organization/list-seats.ts';
import { assignSeat } from '#domain/organization/seats.ts';
import { emptyState } from '../../components/empty-state.ts';
import { buttonForm, textField } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { searchForm, searchText } from '../../components/search-form.ts';
import { table } from '../../components/table.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm, textOf } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientColumns, clientsBreadcrumbs } from './cells.ts';
import { clientPage } from './client.ts';

const eligiblePerPage = 50;

/** Assigns a seat to a client, from the list of clients without one or from the client's page. */
export const assignSeatRoutes = [
  member.view({
    name: 'showAssignSeat',
    path: '/clients/seats/assign',
    permission: 'org.seats.manage',
    query: z.object({ q: searchText, after: z.uuid().nullable().catch(null) }),
    show: (visit, { q, after }) => assignPage(visit, freshForm(), q, after),
  }),

  member.action({
    name: 'assignSeat',
    path: '/clients/:grantId/seat',
    permission: 'org.seats.manage',
    form: z.object({ from: z.enum(['list', 'client']).catch('client') }),
    async act(visit, { from }) {
      const grantId = visit.params.grantId ?? '';
      await assignSeat(visit.console.em, { organizationId: visit.organization.organizationId, grantId, by: visit.by });
      return redirect(visit.at(from === 'list' ? '/clients/seats/assign' : `/clients/${grantId}`), {
        flash: 'Seat assigned.',
      });
    },
    redraw: (visit, state) =>
      textOf(state, 'from') === 'list' ? assignPage(visit, state, '', null) : clientPage(visit, state),
  }),
];

async function assignPage(visit: MemberVisit, state: FormState, q: string, after: string | null): Promise<Page> {
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
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${free === 0 ? notice('warning', html`All ${total.toLocaleString('en')} seats are in use. <a href="${visit.at('/clients/seats')}">End a seat</a> or add seats to your subscription.`) : html`<p>${free.toLocaleString('en')} of ${total.toLocaleString('en')} seats available. Each client can have one seat.</p>`}
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
              ...(free > 0 ? { actions: (client: ClientRow) => assignButton(visit, client) } : {}),
            })
      }
      ${pager({ newer: null, older: next, href, ...(after === null ? {} : { firstHref: href(null) }) })}`,
  });
}

const assignButton = (visit: MemberVisit, { grantId, family, professional }: ClientRow): Html =>
  buttonForm(visit, {
    action: visit.at(`/clients/${grantId}/seat`),
    button: 'Assign seat',
    values: { from: 'list' },
    about: `to ${family} with ${professional}`,
  });

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
