import { z } from 'zod';
import { getSeatCounts, listSeats, type SeatCounts, type SeatRow } from '#domain/clients/list-seats.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { queryString } from '../../components/list-filter.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { table } from '../../components/table.ts';
import { formatCount } from '../../components/text.ts';
import { type Page, page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { assertMaySeeSeats, seatColumns, seatEndColumns } from './cells.ts';
import { clientTabs } from './client-tabs.ts';

const seatsPerPage = 50;

const query = z.object({
  state: z.enum(['assigned', 'ended']).catch('assigned'),
  after: z.guid().nullable().catch(null),
});

/** Lists the seats in use, or past seats, with the counts of seats. */
export const seatsRoutes = [member.view({ name: 'listSeats', path: '/clients/seats', query, show: seatsPage })];

async function seatsPage(visit: MemberVisit, { state, after }: z.output<typeof query>): Promise<Page> {
  assertMaySeeSeats(visit);
  const { database } = visit.console;
  const counts = await getSeatCounts(database, visit.organizationId);
  const { rows, next } = await listSeats(database, visit.organizationId, state, after, seatsPerPage);
  const href = (cursor: string | null) =>
    visit.at(`/clients/seats${queryString({ state: state === 'assigned' ? null : state, after: cursor })}`);
  const mayAssign = visit.may('org.seats.manage');
  return page({
    title: state === 'assigned' ? 'Seats' : 'Past seats',
    actions:
      mayAssign && state === 'assigned' && counts.free > 0
        ? linkButton(visit.at('/clients/seats/assign'), 'Assign seat')
        : null,
    body: html`
      ${clientTabs(visit, state === 'assigned' ? 'seats' : 'past')}
      ${state === 'assigned' ? countsSection(counts) : nothing}
      ${
        rows.length === 0
          ? emptyList(state, after !== null)
          : table<SeatRow>({
              caption: state === 'assigned' ? 'Seats in use' : 'Past seats',
              rows,
              columns: [...seatColumns(visit), ...(state === 'assigned' ? [] : seatEndColumns)],
              actions: mayAssign && state === 'assigned' ? (seat) => endLink(visit, seat) : null,
            })
      }
      ${pager({ isFirst: after === null, older: next, href })}`,
  });
}

function countsSection({ total, used, free, paid, invoiced }: SeatCounts): Html {
  const number = (count: number) => count.toLocaleString('en');
  const sources = [
    paid > 0 && `${number(paid)} by subscription`,
    invoiced > 0 && `${number(invoiced)} by invoice`,
  ].filter((source) => source !== false);
  const tile = (label: string, count: number, detail: string) => html`<li><span class="tile-label">${label}</span>
    <span class="tile-count">${number(count)}</span><span class="quiet">${detail}</span></li>`;
  return html`<ul class="tiles numbers">
      ${tile('Seats', total, sources.join(', ') || 'No seats yet')}
      ${tile('Used', used, 'One per client')}
      ${tile('Available', free, free === 0 ? 'End a seat to assign another' : 'Ready to assign')}
    </ul>
    <p>With a seat, your organization pays for a client. A seat ends when you end it or when the client’s access ends.
      You can then assign it to another client.</p>
    ${used > total ? notice('warning', overuseSentence(used - total)) : nothing}`;
}

const overuseSentence = (extra: number): string =>
  `${formatCount(extra, 'more seat is', 'more seats are')} in use than you have, because a ` +
  'subscription ended. They continue, but you can’t assign new seats until enough have ended.';

function emptyList(state: 'assigned' | 'ended', isBeyond: boolean): Html {
  if (isBeyond) return html`<p>No more seats.</p>`;
  return state === 'assigned'
    ? emptyState({
        icon: 'clients',
        title: 'No seats assigned',
        body: html`Assign a seat to an active client. Your webhooks receive <code>seat.given</code>.`,
      })
    : emptyState({ icon: 'clients', title: 'No ended seats', body: 'Ended seats appear here with the reason.' });
}

const endLink = (visit: MemberVisit, { seatId, family }: SeatRow): Html =>
  linkButton(
    visit.at(`/clients/seats/${seatId}/end`),
    html`End seat<span class="visually-hidden"> of ${family}</span>…`,
    'secondary',
  );
