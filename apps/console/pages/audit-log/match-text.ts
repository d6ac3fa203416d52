import { sql } from 'kysely';
import { containing, type TextMatch } from '#domain/audit-log/plan-search.ts';
import type { Reader } from '#domain/audit-log/search.ts';
import type { Queryable } from '#domain/db/database.ts';
import { knownActions } from '../../components/action-sentences.ts';

/** The most ids of each kind that a text finds; a more precise text finds the rest. */
const idsPerKind = 100;

/**
 * Returns what a searched text may name: members, API keys, webhooks, roles and, for readers who
 * may see clients, families whose names contain it now, and actions whose titles do. The names of the
 * time are on the entries themselves, where the search compares them.
 */
export async function matchText(
  db: Queryable,
  organizationId: string,
  text: string,
  { maySeeClients }: Reader,
): Promise<TextMatch> {
  const exact = text.trim();
  const part = containing(exact);
  const rows = await db.query(sql<{ id: string }>`
    (select m.person_id as id from membership m
      where m.organization_id = ${organizationId} and (m.name ilike ${part} or m.email ilike ${part})
      order by m.person_id limit ${idsPerKind})
    union all
    (select k.id::text from api_key k
      where k.organization_id = ${organizationId} and (k.label ilike ${part} or k.hint ilike ${part})
      order by k.id limit ${idsPerKind})
    union all
    (select w.id::text from webhook w
      where w.organization_id = ${organizationId} and (w.description ilike ${part} or w.url ilike ${part})
      order by w.id limit ${idsPerKind})
    union all
    (select r.id::text from role r
      where (r.organization_id is null or r.organization_id = ${organizationId}) and r.name ilike ${part}
      order by r.id limit ${idsPerKind})
    union all
    (select g.id::text from client_grant g join family f on f.organization_id = g.organization_id and f.id = g.family_id
      where ${maySeeClients} and g.organization_id = ${organizationId} and f.name ilike ${part}
      order by g.id limit ${idsPerKind})`);
  const lower = exact.toLowerCase();
  const titles = knownActions.filter(({ title, action }) => `${title} ${action}`.toLowerCase().includes(lower));
  // As typed, too: ids of people are compared with their case.
  return { ids: [...rows.map(({ id }) => id), exact], actions: titles.map(({ action }) => action), exact: lower };
}
