import { z } from 'zod';
import { getSeat } from '#domain/clients/list-seats.ts';
import { endSeat } from '#domain/clients/seats.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { displayName, truncate } from '../../components/text.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { seatsBreadcrumbs } from './cells.ts';

/** Ends a seat. The client's access continues. */
export const endSeatRoutes = member.formPage({
  pageName: 'showEndSeat',
  name: 'endSeat',
  path: '/clients/seats/:seatId/end',
  permission: 'org.seats.manage',
  form: z.object({}),
  async act(visit) {
    const seatId = visit.params.seatId ?? '';
    await endSeat(visit.console.database, { ...visit.request, seatId });
    return redirect(visit.at('/clients/seats'), { flash: 'Seat ended.' });
  },
  render: endSeatPage,
});

async function endSeatPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const seat = await getSeat(visit.console.database, visit.organizationId, visit.params.seatId ?? '');
  return page({
    title: `End seat of ${truncate(seat.family, 60)}?`,
    breadcrumbs: seatsBreadcrumbs(visit),
    body: form(visit, {
      state,
      button: `End seat of ${truncate(seat.family, 60)}`,
      kind: 'danger',
      fields: html`
        <p>The seat of ${displayName(seat.family)} with ${displayName(seat.professional)} ends now and becomes
          available. The client’s access continues, and you can assign a seat again.</p>
        <p>Your webhooks receive <code>seat.ended</code> with the reason <code>ended_by_organization</code>.</p>
        ${seat.endedAt === null ? nothing : notice('info', 'This seat has already ended.')}`,
      cancel: visit.at('/clients/seats'),
    }),
  });
}
