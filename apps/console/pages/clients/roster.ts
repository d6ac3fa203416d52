import { z } from 'zod';
import { type ClientFilter, type ClientRow, listClients } from '#domain/clients/list-clients.ts';
import { getMemberDetails } from '#domain/members/list-members.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { hiddenField, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { queryString } from '../../components/list-filter.ts';
import { badge } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { clientStatus, clientStatusLabel } from '../../components/status.ts';
import { type Column, table } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { freshForm } from '../../web/form.ts';
import { page, type RouteResponse, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { assertMaySeeSeats, clientColumns } from './cells.ts';
import { clientTabs } from './client-tabs.ts';

const clientsPerPage = 50;

const querySchema = z.object({
  q: searchText,
  state: z.enum(['active', 'scheduled', 'ended', 'all']).nullable().catch(null),
  professional: z.string().min(1).max(255).nullable().catch(null),
  after: z.guid().nullable().catch(null),
});

type Query = z.output<typeof querySchema>;

/** Lists the clients who gave the organization's professionals access. */
export const rosterRoutes = [
  member.view({ name: 'listClients', path: '/clients', query: querySchema, show: rosterPage }),
];

async function rosterPage(visit: MemberVisit, query: Query): Promise<RouteResponse> {
  assertMaySeeSeats(visit);
  if (!visit.may('org.clients.read')) return redirect(visit.at('/clients/seats'));
  const { database, now } = visit.console;
  const { q, professional } = query;
  const state = getState(query);
  const chosen =
    professional === null ? null : await getMemberDetails(database, visit.organizationId, professional, now());
  const filter: ClientFilter = { state, text: q, professionalId: professional };
  const { rows, next } = await listClients(database, visit.organizationId, filter, query.after, clientsPerPage);
  const columns: Column<ClientRow>[] = [
    ...clientColumns(visit),
    { heading: state === 'ended' ? 'Ended' : 'Ends', cell: ({ endsAt }) => time(endsAt, 'No end date') },
    { heading: 'Status', whenNarrow: 'beside', cell: clientStatus },
    {
      heading: 'Seat',
      cell: ({ seatId }) => (seatId === null ? html`<span class="quiet">–</span>` : badge('info', 'Assigned')),
    },
    ...(state === 'ended' ? [reasonColumn] : []),
  ];
  return page({
    title: 'Clients',
    body: html`
      ${clientTabs(visit, 'clients')}
      ${chosen === null ? nothing : renderProfessionalFilter(visit, chosen.name)}
      ${search(visit, query)}
      ${rows.length === 0 ? emptyRoster(visit, query) : table({ caption: 'Clients', columns, rows })}
      ${pager({
        isFirst: query.after === null,
        older: next,
        href: (after) => formatHref(visit, { ...query, after }),
      })}`,
  });
}

const renderProfessionalFilter = (visit: MemberVisit, name: string): Html =>
  html`<p>Clients of ${displayName(name)}. <a href="${visit.at('/clients')}">View all</a></p>`;

const reasonColumn: Column<ClientRow> = {
  heading: 'Reason',
  cell: ({ endReason }) => (endReason === 'moved' ? 'Moved to a colleague' : 'Ended'),
};

/** Returns which clients are listed: the active ones, and for a search all, if nothing else is chosen. */
const getState = ({ q, state }: Query): ClientFilter['state'] => state ?? (q === '' ? 'active' : 'all');

function search(visit: MemberVisit, { q, state, professional }: Query): Html {
  const form = freshForm({ q, state: state ?? '' });
  const isAll = q === '' && (state ?? 'active') === 'active' && professional === null;
  return searchForm({
    action: visit.at('/clients'),
    label: 'Search clients',
    clear: isAll ? null : visit.at('/clients'),
    fields: html`
      ${searchField(form, 'Client or professional')}
      ${selectField(form, { name: 'state', label: 'Status', required: false, options: states })}
      ${professional === null ? nothing : hiddenField('professional', professional)}`,
  });
}

const states = [
  { value: '', label: 'Active; a search finds all' },
  { value: 'active', label: clientStatusLabel('active') },
  { value: 'scheduled', label: clientStatusLabel('scheduled') },
  { value: 'ended', label: clientStatusLabel('ended') },
  { value: 'all', label: 'All' },
];

function emptyRoster(visit: MemberVisit, query: Query): Html {
  const { q, professional, after } = query;
  if (q === '' && getState(query) === 'active' && professional === null && after === null)
    return emptyState({
      title: 'No active clients',
      icon: 'clients',
      body: html`A family becomes a client when it gives one of your professionals access in its own app. You see
        only names and dates. Your webhooks receive <code>client.started</code>.`,
      action: linkButton(visit.at('/clients?state=ended'), 'View past clients', 'secondary'),
    });
  return emptyState({
    title: 'No matching clients',
    body: html`Change the search, or
      <a href="${visit.at('/clients?state=all')}">view all, including past clients</a>.`,
  });
}

const formatHref = (visit: MemberVisit, { q, state, professional, after }: Query): string =>
  visit.at(`/clients${queryString({ q, state, professional, after })}`);
