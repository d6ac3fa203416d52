import { z } from 'zod';
import { moveGrant } from '#domain/clients/end-access.ts';
import { type ClientDetails, getClient } from '#domain/clients/list-clients.ts';
import { readableEmail } from '#domain/contract/email.ts';
import { listMembers, type MemberRow } from '#domain/members/list-members.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { choiceField, form } from '../../components/form.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { displayName, truncate } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientBreadcrumbs, endedNotice, nothingSent, seatImpact } from './end.ts';

/** How many colleagues are offered. A search finds the others. */
const maxColleagues = 20;

/** Moves a client's access to a colleague. */
export const moveRoutes = member.formPage({
  pageName: 'showMoveGrant',
  name: 'moveGrant',
  path: '/clients/:grantId/move',
  permission: 'org.seats.manage',
  stepUp: true,
  query: z.object({ q: searchText }),
  form: z.object({ to: z.string({ error: 'Choose a colleague.' }).min(1, 'Choose a colleague.').max(255) }),
  async act(visit, { to: toPersonId }) {
    const grantId = visit.params.grantId ?? '';
    const { id } = await moveGrant(visit.console.database, { ...visit.request, grantId, toPersonId });
    return redirect(visit.at(`/clients/${id}`), { flash: 'Client moved. The new access has no seat yet.' });
  },
  render: movePage,
});

async function movePage(visit: MemberVisit, state: FormState, { q }: { q: string }): Promise<Page> {
  const { database, now } = visit.console;
  const client = await getClient(database, visit.organizationId, visit.params.grantId ?? '');
  const filter = { status: 'active', text: q, roleId: null } as const;
  const { rows, next } = await listMembers(database, visit.organizationId, filter, null, maxColleagues + 1, now());
  const colleagues = rows.filter(({ personId }) => personId !== client.professionalId);
  const isScheduled = client.status === 'scheduled';
  return page({
    title: `Move client ${truncate(client.family, 60)}`,
    breadcrumbs: clientBreadcrumbs(visit, client),
    body: html`
      <p>Moves ${displayName(client.family)} from ${displayName(client.professional)} to a colleague now. The
        end date stays the same.
        ${isScheduled ? html`The new access begins on ${time(client.since)}, as the old one would have.` : nothing}</p>
      <ul>
        ${seatImpact(client)}
        ${client.seatId === null ? nothing : html`<li>Assign a new seat afterwards, if needed.</li>`}
        ${
          isScheduled
            ? nothingSent
            : html`<li>Your webhooks receive <code>client.ended</code> with the reason <code>moved</code>${
                client.seatId === null ? '' : html`, <code>seat.ended</code>`
              }, and <code>client.started</code> for the new access.</li>`
        }
      </ul>
      ${endedNotice(client)}
      ${searchForm({
        action: visit.path,
        label: 'Search colleagues',
        fields: searchField(freshForm({ q }), 'Find a colleague'),
        clear: q === '' ? null : visit.path,
      })}
      ${
        colleagues.length === 0
          ? noColleague(visit, q)
          : moveForm(visit, client, colleagues.slice(0, maxColleagues), next !== null, state)
      }`,
  });
}

function moveForm(
  visit: MemberVisit,
  { grantId, family }: ClientDetails,
  colleagues: readonly MemberRow[],
  hasMore: boolean,
  state: FormState,
): Html {
  return form(visit, {
    state,
    button: `Move ${truncate(family, 60)}`,
    kind: 'danger',
    fields: choiceField(state, {
      name: 'to',
      label: 'Colleague',
      kind: 'radio',
      hint: hasMore ? `Shows the first ${maxColleagues} by name. Search to find others.` : null,
      choices: colleagues.map(({ personId, name, title, email }) => ({
        value: personId,
        label: displayName(name),
        hint: html`${title === null ? nothing : html`${displayName(title)}, `}${displayName(readableEmail(email))}`,
      })),
    }),
    cancel: visit.at(`/clients/${grantId}`),
  });
}

const noColleague = (visit: MemberVisit, q: string): Html =>
  q === ''
    ? html`<p>There are no other active members.
        ${
          visit.may('org.members.manage') ? html`<a href="${visit.at('/members/invite')}">Invite member</a>` : nothing
        }</p>`
    : html`<p>No matching members.</p>`;
