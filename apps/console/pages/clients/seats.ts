import { z } from 'zod';
import { getSeatCounts, listSeats, type SeatCounts, type SeatRow } from '#domain/organization/list-seats.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { type Column, table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Page, page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { assertMaySeeSeats, clientsBreadcrumbs, seatColumns, seatEndWords } from './cells.ts';

const seatsPerPage = 50;

const query = z.object({ state: z.enum(['held', 'ended']).catch('held'), after: z.uuid().nullable().catch(null) });

/** The seats: how many there are, who holds them, which are over. */
export const seatsRoutes = [member.view({ name: 'listSeats', path: '/clients/seats', query, show: seatsPage })];

async function seatsPage(visit: MemberVisit, { state, after }: z.output<typeof query>): Promise<Page> {
  assertMaySeeSeats(visit);
  const { em } = visit.console;
  const { organizationId } = visit.organization;
  const places = await getSeatCounts(em, organizationId);
  const { rows, next } = await listSeats(em, organizationId, state, after, seatsPerPage);
  const href = (cursor: string | null) => hrefOf(visit, state, cursor);
  const mayGive = visit.may('org.seats.manage');
  return page({
    title: state === 'held' ? 'Seats' : 'Seats that are over',
    breadcrumbs:
      state === 'held'
        ? clientsBreadcrumbs(visit)
        : [['Seats', visit.at('/clients/seats')], ...clientsBreadcrumbs(visit)],
    body: html`
      ${state === 'held' ? placesSection(places) : nothing}
      <p class="actions">${mayGive && state === 'held' && places.free > 0 ? linkButton(visit.at('/clients/seats/give'), 'Give a seat') : nothing}
        ${state === 'held' ? html`<a href="${hrefOf(visit, 'ended', null)}">Seats that are over</a>` : nothing}</p>
      ${
        rows.length === 0
          ? none(state, after !== null)
          : table<SeatRow>({
              caption: state === 'held' ? 'Seats that are held' : 'Seats that are over',
              rows,
              columns: [...seatColumns(visit), ...(state === 'held' ? [] : endColumns)],
              ...(mayGive && state === 'held' ? { actions: (seat: SeatRow) => endLink(visit, seat) } : {}),
            })
      }
      ${pager({ newer: null, older: next, href, ...(after === null ? {} : { firstHref: href(null) }) })}`,
  });
}

/** How many seats there are, in numbers and in words. */
export function placesSection({ total, used, free, paid, invoiced }: SeatCounts): Html {
  const number = (count: number) => count.toLocaleString('en');
  const sources = [
    paid > 0 && `${number(paid)} by subscription`,
    invoiced > 0 && `${number(invoiced)} by invoice`,
  ].filter((source) => source !== false);
  return html`<ul class="tiles numbers">
      <li><span class="tile-label">Seats</span><span class="tile-count">${number(total)}</span><span class="quiet">${sources.join(', ') || 'none bought yet'}</span></li>
      <li><span class="tile-label">Used</span><span class="tile-count">${number(used)}</span><span class="quiet">one a family, while it holds it</span></li>
      <li><span class="tile-label">Free</span><span class="tile-count">${number(free)}</span><span class="quiet">${free === 0 ? 'end a seat to free one' : 'to give to families'}</span></li>
    </ul>
    <p>With a seat your organization pays for a client family. It is given to a family whose access is active, ends when you end it or when the access ends, and its place can be given again at once.</p>
    ${used > total ? notice('warning', `${number(used - total)} more seats are held than you have, because a subscription ended. They stay; no new one can be given until enough have ended.`) : nothing}`;
}

function none(state: 'held' | 'ended', isBeyond: boolean): Html {
  if (isBeyond) return html`<p>There are no more.</p>`;
  return state === 'held'
    ? emptyState({
        title: 'No family holds a seat yet',
        body: html`Give one to a client family whose access is active. Your systems are told by the event <code>seat.given</code>.`,
      })
    : emptyState({ title: 'None is over yet', body: 'Seats that have ended are kept here with the reason.' });
}

const endColumns: Column<SeatRow>[] = [
  { heading: 'Ended', cell: ({ endedAt }) => time(endedAt) },
  { heading: 'Why', cell: ({ endReason }) => (endReason === null ? '' : seatEndWords[endReason]) },
];

const endLink = (visit: MemberVisit, { seatId, family }: SeatRow): Html =>
  linkButton(
    visit.at(`/clients/seats/${seatId}/end`),
    html`End<span class="visually-hidden"> the seat of ${family}</span>…`,
    'secondary',
  );

function hrefOf(visit: MemberVisit, state: 'held' | 'ended', after: string | null): string {
  const search = new URLSearchParams();
  if (state !== 'held') search.set('state', state);
  if (after !== null) search.set('after', after);
  return visit.at(`/clients/seats${search.size === 0 ? '' : `?${search}`}`);
}
