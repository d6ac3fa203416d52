import { z } from 'zod';
import { type ClientFilter, listClients } from '#domain/organization/list-clients.ts';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { displayName } from '../../components/display-name.ts';
import { emptyState } from '../../components/empty-state.ts';
import { selectField, textField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { badge } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { searchForm, searchText } from '../../components/search-form.ts';
import { clientStatus, clientStatusLabel } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Answer, page, redirect } from '../../web/answer.ts';
import { freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { assertMaySeeSeats, clientColumns } from './cells.ts';
import { clientTabs } from './client-tabs.ts';

const clientsPerPage = 50;

const query = z.object({
  q: searchText,
  state: z.enum(['active', 'ended', 'all']).catch('active'),
  professional: z
    .string()
    .min(1)
    .max(255)
    .refine((text) => !text.includes('\0'))
    .nullable()
    .catch(null),
  after: z.uuid().nullable().catch(null),
});

type Query = z.output<typeof query>;

/** Lists the clients who gave the organization's professionals access. */
export const rosterRoutes = [member.view({ name: 'listClients', path: '/clients', query, show: rosterPage })];

async function rosterPage(visit: MemberVisit, asked: Query): Promise<Answer> {
  assertMaySeeSeats(visit);
  if (!visit.may('org.clients.read')) return redirect(visit.at('/clients/seats'));
  const { em, now } = visit.console;
  const { organizationId } = visit.organization;
  const { q, state, professional } = asked;
  const whose = professional === null ? null : await getMemberDetails(em, organizationId, professional, now());
  const filter: ClientFilter = { state, text: q, professionalId: professional };
  const { rows, next } = await listClients(em, organizationId, filter, asked.after, clientsPerPage);
  const columns = [
    ...clientColumns(visit),
    { heading: 'Ends', cell: ({ endsAt }: (typeof rows)[number]) => time(endsAt, 'No end date') },
    { heading: 'Status', whenNarrow: 'beside' as const, cell: clientStatus },
    {
      heading: 'Seat',
      cell: ({ seatId }: (typeof rows)[number]) =>
        seatId === null ? html`<span class="quiet">–</span>` : badge('info', 'Assigned'),
    },
  ];
  return page({
    title: 'Clients',
    body: html`
      ${clientTabs(visit, 'clients')}
      ${whose === null ? nothing : onlyOf(visit, whose.name)}
      ${search(visit, asked)}
      ${rows.length === 0 ? emptyRoster(visit, asked) : table({ caption: 'Clients', columns, rows })}
      ${pager({
        newer: null,
        older: next,
        href: (after) => hrefOf(visit, { ...asked, after }),
        ...(asked.after === null ? {} : { firstHref: hrefOf(visit, { ...asked, after: null }) }),
      })}`,
  });
}

const onlyOf = (visit: MemberVisit, name: string): Html =>
  html`<p>Clients of ${displayName(name)}. <a href="${visit.at('/clients')}">View all</a></p>`;

function search(visit: MemberVisit, { q, state, professional }: Query): Html {
  const form = freshForm({ q, state });
  const isAll = q === '' && state === 'active' && professional === null;
  return searchForm({
    action: visit.at('/clients'),
    label: 'Search clients',
    clear: isAll ? null : visit.at('/clients'),
    fields: html`
      ${textField(form, {
        name: 'q',
        label: 'Client or professional',
        type: 'search',
        required: false,
        maxLength: 200,
      })}
      ${selectField(form, { name: 'state', label: 'Status', required: false, options: states })}
      ${professional === null ? nothing : html`<input type="hidden" name="professional" value="${professional}">`}`,
  });
}

const states = [
  { value: 'active', label: clientStatusLabel('active') },
  { value: 'ended', label: clientStatusLabel('ended') },
  { value: 'all', label: 'All' },
];

function emptyRoster(visit: MemberVisit, { q, state, professional, after }: Query): Html {
  if (q === '' && state === 'active' && professional === null && after === null)
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

function hrefOf(visit: MemberVisit, { q, state, professional, after }: Query): string {
  const search = new URLSearchParams();
  if (q !== '') search.set('q', q);
  if (state !== 'active') search.set('state', state);
  if (professional !== null) search.set('professional', professional);
  if (after !== null) search.set('after', after);
  return visit.at(`/clients${search.size === 0 ? '' : `?${search}`}`);
}
