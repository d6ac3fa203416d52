import { sql } from 'kysely';
import { z } from 'zod';
import { listClients } from '#domain/clients/list-clients.ts';
import { isIpRange } from '#domain/contract/ip-range.ts';
import type { Queryable } from '#domain/db/database.ts';
import { fold } from '#domain/db/fold.ts';
import { listValidKeys } from '#domain/keys/list.ts';
import { listMembers } from '#domain/members/list-members.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { queryString } from '../../components/list-filter.ts';
import { searchField, searchForm, searchText } from '../../components/search-form.ts';
import { freshForm } from '../../web/form.ts';
import { page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { quotedKey } from '../keys/cells.ts';
import { webhookTitle } from '../webhooks/find-webhook.ts';

/** What an id names in an organization; `entry` is an entry of the audit log. */
type Named = Record<'event' | 'client' | 'webhook' | 'key' | 'entry', boolean>;

/** Each is a look-up by key. */
async function findNamed(db: Queryable, organizationId: string, id: string): Promise<Named | undefined> {
  const [named] = await db.query(sql<Named>`
    select exists (select from event e where e.organization_id = ${organizationId} and e.id = ${id}) as event,
      exists (select from client_grant g where g.organization_id = ${organizationId} and g.id = ${id}) as client,
      exists (select from webhook w where w.organization_id = ${organizationId} and w.id = ${id}) as webhook,
      exists (select from api_key k where k.organization_id = ${organizationId} and k.id = ${id}) as key,
      exists (select from audit_entry a where a.organization_id = ${organizationId} and a.id = ${id}) as entry`);
  return named;
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
            ? emptyState({ title: 'No matches', body: 'Enter a whole ID or IP address, or a part of a name or URL.' })
            : html`<ul>${found.map(({ path, label }) => html`<li><a href="${path}">${label}</a></li>`)}</ul>`
        }${logLink(visit, text)}`,
      });
    },
  }),
];

interface Found {
  path: string;
  label: string;
}

async function findPages(visit: MemberVisit, text: string): Promise<Found[]> {
  const list = listIn(visit);
  const mayLog = visit.may('org.activity.read');
  const [mayClients, mayWebhooks] = [visit.may('org.clients.read'), visit.may('org.webhooks.manage')];
  const id = text.toLowerCase();
  if (z.guid().safeParse(id).success) {
    const named = await findNamed(visit.console.database, visit.organizationId, id);
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
  if (isIpRange(text)) return list(mayLog, '/audit-log', { address: text }, 'Audit log entries from here');
  return findByName(visit, text);
}

/** Returns a function that lists a page if the member may see it. */
const listIn =
  (visit: MemberVisit) =>
  (isShown: boolean, path: string, query: Record<string, string>, label: string): Found[] =>
    isShown ? [{ path: visit.at(path) + queryString(query), label }] : [];

/** Finds members, clients, webhooks and keys by a part of a name or URL. */
async function findByName(visit: MemberVisit, text: string): Promise<Found[]> {
  const list = listIn(visit);
  const [mayMembers, mayClients] = [visit.may('org.members.read'), visit.may('org.clients.read')];
  const { database, now } = visit.console;
  const of = visit.organizationId;
  const members =
    mayMembers && (await listMembers(database, of, { status: 'all', text, roleId: null }, null, 1, now()));
  const clients =
    mayClients && (await listClients(database, of, { state: 'all', text, professionalId: null }, null, 1));
  const webhooks = visit.may('org.webhooks.manage') ? await listWebhooks(database, visit.request) : [];
  const keys = visit.may('org.keys.manage') ? await listValidKeys(database, of, now()) : [];
  const has = (value: string) => fold(value).includes(fold(text));
  return [
    ...list(members && members.rows.length > 0, '/members', { q: text, status: 'all' }, `Members named “${text}”`),
    ...list(clients && clients.rows.length > 0, '/clients', { q: text, state: 'all' }, `Clients named “${text}”`),
    ...webhooks
      .filter(({ url, description }) => has(url) || has(description))
      .flatMap((webhook) => list(true, `/webhooks/${webhook.id}`, {}, `Webhook ${webhookTitle(webhook)}`)),
    ...keys.filter(({ label }) => has(label)).flatMap((key) => list(true, `/keys/${key.id}`, {}, quotedKey(key))),
  ];
}

/** Renders a link that searches the audit log, whose search is not made before it is asked for. */
const logLink = (visit: MemberVisit, text: string): Html =>
  text === '' || !visit.may('org.activity.read')
    ? nothing
    : html`<p><a href="${visit.at('/audit-log') + queryString({ q: text })}">Search the audit log for “${text}”</a>
      </p>`;

/** Renders the search of an organization. */
export const overviewSearch = (visit: MemberVisit, q = ''): Html =>
  searchForm({
    action: visit.at('/search'),
    label: 'Search',
    fields: searchField(freshForm({ q }), 'ID, address or name'),
    clear: null,
  });
