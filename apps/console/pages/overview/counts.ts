import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { copyableId } from '../../components/copy.ts';
import { time } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { type Overview, waitingCountedTo } from './query.ts';

/** Renders how many keys, webhooks, members and clients there are, of those the member may see. */
export function counts(visit: MemberVisit, overview: Overview): Html {
  const { validKeys, webhooks, waitingDeliveries, activeMembers, activeFamilies, nextBegin, seatsUsed } = overview;
  const next = nextBegin === null ? nothing : html`. The next one begins on ${time(nextBegin)}`;
  const seats = html`${seatsUsed} with a seat${next}`;
  const tiles = [
    visit.may('org.keys.manage') && (['API keys', validKeys, 'active', '/keys'] as const),
    visit.may('org.webhooks.manage') && (['Webhooks', webhooks, pendingText(waitingDeliveries), '/webhooks'] as const),
    visit.may('org.members.read') && (['Members', activeMembers, 'active', '/members'] as const),
    visit.may('org.clients.read') && (['Clients', activeFamilies, seats, '/clients'] as const),
  ].filter((tile) => tile !== false);
  const none = html`<p>Your roles don’t include any counts. Ask an owner or administrator for more permissions.</p>`;
  return html`<section aria-labelledby="counts"><h2 id="counts">${visit.organization.organizationName}</h2>
    ${tiles.length === 0 ? none : nothing}
    <p class="quiet">Organization ID ${copyableId('organization ID', visit.organizationId)}</p>
    <ul class="tiles">${tiles.map(
      ([label, count, detail, path]) => html`<li><a href="${visit.at(path)}"><span class="tile-label">${label}</span>
        <span class="tile-count">${count.toLocaleString('en')}</span><span class="quiet">${detail}</span></a></li>`,
    )}</ul></section>`;
}

const pendingText = (deliveries: number) => {
  const count = `${deliveries.toLocaleString('en')}${deliveries < waitingCountedTo ? '' : ' or more'}`;
  return `${count} unfinished ${deliveries === 1 ? 'delivery' : 'deliveries'}`;
};
