import type { Html } from '#runtime/pages/html.ts';
import { tabs } from '../../components/tabs.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Renders the tabs of clients and seats; the roster for members who may see it. */
export function clientTabs(visit: MemberVisit, here: 'clients' | 'seats' | 'past'): Html {
  const roster = { label: 'Clients', href: visit.at('/clients'), isHere: here === 'clients' };
  return tabs('Clients and seats', [
    ...(visit.may('org.clients.read') ? [roster] : []),
    { label: 'Seats', href: visit.at('/clients/seats'), isHere: here === 'seats' },
    { label: 'Past seats', href: visit.at('/clients/seats?state=ended'), isHere: here === 'past' },
  ]);
}
