import { z } from 'zod';
import { findRetentionDays } from '#domain/audit-log/retention.ts';
import { type AuditLogPage, listAuditEntries, type Position } from '#domain/audit-log/search.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { filterQuery, isFiltered } from '../../components/list-filter.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { time } from '../../components/time.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import {
  type Cursor,
  cursorField,
  cursorText,
  type FilterQuery,
  filterFields,
  getReader,
  readFilter,
} from './filter.ts';
import { auditLogFilterForm } from './filter-form.ts';
import { auditLogTable } from './table.ts';

const entriesPerPage = 50;

/** Lists the log, newest first, filtered and paged in both directions. */
export const listRoutes = [
  member.view({
    name: 'listAuditEntries',
    path: '/audit-log',
    permission: 'org.activity.read',
    query: z.object({ ...filterFields, at: cursorField }),
    async show(visit, { at, ...query }) {
      const found = await findPage(visit, query, at);
      const stopped = found.isWhole ? null : at?.direction === 'newer' ? found.newer : found.older;
      return page({
        title: 'Audit log',
        body: html`
          ${await retentionNote(visit)}
          ${await auditLogFilterForm(visit, query)}
          ${
            found.entries.length === 0
              ? emptyLog(visit, query, found)
              : auditLogTable(visit, found.entries, 'Audit log')
          }
          ${stopped === null ? nothing : searchFurther(visit, query, at?.direction ?? 'older', stopped)}
          ${pager({
            isFirst: at === null,
            newer: stopped === found.newer ? null : cursorText('newer', found.newer),
            older: stopped === found.older ? null : cursorText('older', found.older),
            href: (cursor) => visit.at(`/audit-log${filterQuery(query, { at: cursor })}`),
          })}
          ${found.entries.length === 0 ? nothing : download(visit, query)}`,
      });
    },
  }),
];

/** States how long the log is kept. */
async function retentionNote({ console }: MemberVisit): Promise<Html> {
  const days = await findRetentionDays(console.database);
  if (days === null) return nothing;
  return html`<p class="quiet">Entries are kept for at least ${days.toLocaleString('en')} days, then deleted by whole
    months.</p>`;
}

/** Returns a page. If newer entries do not fill it, the full first page is returned instead. */
async function findPage(visit: MemberVisit, query: FilterQuery, cursor: Cursor | null): Promise<AuditLogPage> {
  const filter = await readFilter(visit, query);
  const find = (from: Cursor | null) =>
    listAuditEntries(visit.console.database, visit.organizationId, filter, from, entriesPerPage, getReader(visit));
  const found = await find(cursor);
  const isShortFirst = cursor?.direction === 'newer' && found.newer === null && found.entries.length < entriesPerPage;
  return isShortFirst ? find(null) : found;
}

/** Explains that the search stopped at its limit, with a link to continue. */
function searchFurther(
  visit: MemberVisit,
  query: FilterQuery,
  direction: Cursor['direction'],
  position: Position,
): Html {
  const href = visit.at(`/audit-log${filterQuery(query, { at: cursorText(direction, position) ?? '' })}`);
  return notice(
    'info',
    html`Searched ${direction === 'older' ? 'back' : 'forward'} to ${time(position.at)}.
      <a href="${href}">Search further</a>`,
  );
}

function emptyLog(visit: MemberVisit, query: FilterQuery, { isWhole }: AuditLogPage): Html {
  if (!isWhole) return nothing;
  if (isFiltered(query))
    return emptyState({
      title: 'No matching entries',
      body: 'Change or clear the filter.',
      action: linkButton(visit.at('/audit-log'), 'View all', 'secondary'),
    });
  return emptyState({
    title: 'No entries yet',
    body: 'API calls and actions in this console appear here.',
  });
}

const download = (visit: MemberVisit, query: FilterQuery): Html =>
  html`<p class="actions">${linkButton(
    visit.at(`/audit-log/csv${filterQuery(query)}`),
    isFiltered(query) ? 'Download filtered CSV' : 'Download CSV',
    'secondary',
  )}
    ${linkButton(visit.at('/audit-log/evidence'), 'Evidence package…', 'secondary')}
    <span class="quiet">Includes all pages. Times are in UTC. The download is recorded in the log.</span></p>`;
