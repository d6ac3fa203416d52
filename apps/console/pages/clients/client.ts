import { type ClientDetails, getClient } from '#domain/clients/list-clients.ts';
import { getSeatCounts, listSeatsOfGrant, type SeatRow } from '#domain/clients/list-seats.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { copyableId } from '../../components/copy.ts';
import { linkButton } from '../../components/link.ts';
import { clientStatus } from '../../components/status.ts';
import { detailList, table } from '../../components/table.ts';
import { truncate } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from '../members/path.ts';
import {
  assertMaySeeSeats,
  clientsBreadcrumbs,
  kindLabels,
  seatEndColumns,
  seatsAvailable,
  seatsInUse,
} from './cells.ts';

/** Shows one client's access to one professional, and its seats. */
export const clientRoutes = [member.view({ name: 'showClient', path: '/clients/:grantId', show: clientPage })];

async function clientPage(visit: MemberVisit): Promise<Page> {
  assertMaySeeSeats(visit);
  const { database } = visit.console;
  const client = await getClient(database, visit.organizationId, visit.params.grantId ?? '');
  const seats = await listSeatsOfGrant(database, visit.organizationId, client.grantId);
  return page({
    title: truncate(client.family, 80),
    breadcrumbs: clientsBreadcrumbs(visit),
    body: html`
      ${detailList([
        client.family.length > 80 && ['Name', html`<bdi>${client.family}</bdi>`],
        ['Professional', professional(visit, client)],
        ['Kind', kindLabels[client.kind]],
        ['Access ID', copyableId('access ID', client.grantId)],
        [hasBegun(client) ? 'Since' : 'Begins', time(client.since)],
        [client.status === 'ended' ? 'Ended' : 'Ends', time(client.endsAt, 'No end date')],
        [
          'Status',
          html`${clientStatus(client)}
            ${client.endReason === 'moved' ? html`<span class="quiet">Moved to a colleague.</span>` : nothing}
            ${client.status === 'withdrawn' ? html`<span class="quiet">It never began.</span>` : nothing}`,
        ],
      ])}
      ${
        client.status === 'ended'
          ? html`<p class="actions">
              ${linkButton(visit.at(`/clients/${client.grantId}/receipt`), 'View receipt', 'secondary')}</p>`
          : nothing
      }
      ${await seatSection(visit, client, seats)}
      ${isOpen(client) && visit.may('org.seats.manage') ? accessSection(visit, client) : nothing}`,
  });
}

const hasBegun = ({ status }: ClientDetails) => status === 'active' || status === 'ended';
const isOpen = ({ status }: ClientDetails) => status === 'active' || status === 'scheduled';

function professional(visit: MemberVisit, { professionalId, professional: name }: ClientDetails): Html {
  const shown = html`<bdi>${truncate(name, 200)}</bdi>`;
  return visit.may('org.members.read') ? html`<a href="${memberPath(visit, professionalId)}">${shown}</a>` : shown;
}

async function seatSection(visit: MemberVisit, client: ClientDetails, seats: readonly SeatRow[]): Promise<Html> {
  const current = seats.find(({ endedAt }) => endedAt === null);
  const past = seats.filter(({ endedAt }) => endedAt !== null);
  return html`<section aria-labelledby="seat"><h2 id="seat">Seat</h2>
    ${current === undefined ? await withoutSeat(visit, client) : withSeat(visit, current)}
    ${
      past.length === 0
        ? nothing
        : table<SeatRow>({
            caption: 'Past seats',
            rows: past,
            columns: [{ heading: 'Assigned', main: true, cell: ({ givenAt }) => time(givenAt) }, ...seatEndColumns],
          })
    }</section>`;
}

function withSeat(visit: MemberVisit, { seatId, givenAt }: SeatRow): Html {
  const end = linkButton(visit.at(`/clients/seats/${seatId}/end`), 'End seat…', 'secondary');
  return html`<p>Seat assigned ${time(givenAt)}.</p>
    ${visit.may('org.seats.manage') ? html`<p class="actions">${end}</p>` : nothing}`;
}

async function withoutSeat(visit: MemberVisit, client: ClientDetails): Promise<Html> {
  if (client.status !== 'active')
    return html`<p>${seatlessBecause[client.status]} Only active access can have a seat.</p>`;
  if (client.hasSeatElsewhere)
    return html`<p>This client already has a seat with another professional. Each client can have one seat.</p>`;
  if (!visit.may('org.seats.manage')) return html`<p>No seat.</p>`;
  const { free, total } = await getSeatCounts(visit.console.database, visit.organizationId);
  if (free === 0) return html`<p>No seat. ${seatsInUse(visit, total)} first.</p>`;
  return html`<p>No seat. ${seatsAvailable({ free, total })}</p>
    <p class="actions">${linkButton(visit.at(`/clients/${client.grantId}/seat`), 'Assign seat…')}</p>`;
}

const seatlessBecause = {
  scheduled: 'This access has not begun.',
  ended: 'This access has ended.',
  withdrawn: 'This access was withdrawn before it began.',
} as const;

function accessSection(visit: MemberVisit, { grantId, status }: ClientDetails): Html {
  const here = visit.at(`/clients/${grantId}`);
  const [what, end] =
    status === 'scheduled'
      ? ['Move the client to a colleague, or withdraw the access before it begins.', 'Withdraw access…']
      : ['Move the client to a colleague, or end the access. Both also end the client’s seat.', 'End access…'];
  return html`<section aria-labelledby="access"><h2 id="access">Access</h2>
    <p>${what}</p>
    <p class="actions">${linkButton(`${here}/move`, 'Move client…', 'secondary')}
      ${linkButton(`${here}/end`, end, 'secondary')}</p></section>`;
}
