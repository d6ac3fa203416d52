import { isIP } from 'node:net';
import type { Pool } from 'pg';
import { z } from 'zod';
import { emptyState } from '../../components/empty-state.ts';
import { queryString } from '../../components/list-filter.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { freshForm } from '../../web/form.ts';
import { type Html, html } from '../../web/html.ts';
import { page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** What an id names in an organization; `entry` is an entry of the audit log. */
type Named = Record<'event' | 'client' | 'webhook' | 'key' | 'entry', boolean>;

/** `$1` organization, `$2` id. Each is a look-up by key. */
const findNamedSql = /* sql */ `
  select exists (select from event e where e.organization_id = $1 and e.id = $2) as event,
    exists (select from client_grant g where g.organization_id = $1 and g.id = $2) as client,
    exists (select from webhook w where w.organization_id = $1 and w.id = $2) as webhook,
    exists (select from api_key k where k.organization_id = $1 and k.id = $2) as key,
    exists (select from audit_entry a where a.organization_id = $1 and a.id = $2) as entry`;

async function findNamed(pool: Pool, organizationId: string, id: string): Promise<Named | undefined> {
  const { rows } = await pool.query<Named>({ name: 'findNamed', text: findNamedSql, values: [organizationId, id] });
  return rows[0];
}

/** Leads from an id, an address or a name to its row. One match opens at once. */
export const searchRoutes = [
  member.view({
    name: 'searchOrganization',
    path: '/search',
    query: z.object({ q: searchText }),
    async show(visit, { q }) {
      const text = q.trim();
      const found = text === '' ? [] : await findPages(visit, text);
      const [only] = found;
      if (only !== undefined && found.length === 1) return redirect(only.path);
      return page({
        title: 'Search',
        body: html`${overviewSearch(visit, q)}${
          found.length === 0
            ? emptyState({ title: 'No matches', body: 'Enter a whole ID or address, or the start of a name.' })
            : html`<ul>${found.map(({ path, label }) => html`<li><a href="${path}">${label}</a></li>`)}</ul>`
        }`,
      });
    },
  }),
];

interface Found {
  path: string;
  label: string;
}

async function findPages(visit: MemberVisit, text: string): Promise<Found[]> {
  const list = (isShown: boolean, path: string, query: Record<string, string>, label: string): Found[] =>
    isShown ? [{ path: visit.at(path) + queryString(query), label }] : [];
  const [mayLog, mayMembers] = [visit.may('org.audit_log.read'), visit.may('org.members.read')];
  const [mayClients, mayWebhooks] = [visit.may('org.clients.read'), visit.may('org.webhooks.manage')];
  const id = text.toLowerCase();
  if (z.uuid().safeParse(id).success) {
    const named = await findNamed(visit.console.pool, visit.organizationId, id);
    if (named === undefined || !Object.values(named).includes(true)) return [];
    return [
      ...list(named.event && mayWebhooks, '/deliveries', { event: id }, 'Deliveries of this event'),
      ...list(named.client && mayClients, `/clients/${id}`, {}, 'Client'),
      ...list(named.webhook && mayWebhooks, `/webhooks/${id}`, {}, 'Webhook'),
      ...list(named.key && visit.may('org.keys.manage'), `/keys/${id}`, {}, 'API key'),
      ...list(named.entry && mayLog, `/audit-log/${id}`, {}, 'Entry of the audit log'),
      ...list(!named.entry && !named.event && mayLog, '/audit-log', { object: id }, 'Audit log entries about this ID'),
    ];
  }
  if (isIP(text.replace(/\/\d+$/, '')) !== 0)
    return list(mayLog, '/audit-log', { address: text }, 'Audit log entries from here');
  return [
    ...list(mayMembers, '/members', { q: text }, `Members named “${text}”`),
    ...list(mayClients, '/clients', { q: text }, `Clients named “${text}”`),
    ...list(mayLog, '/audit-log', { q: text }, `Audit log entries about “${text}”`),
  ];
}

/** Renders the search of an organization. */
export const overviewSearch = (visit: MemberVisit, q = ''): Html =>
  searchForm({
    action: visit.at('/search'),
    label: 'Search',
    fields: searchField(freshForm({ q }), 'ID, address or name'),
    clear: null,
  });
