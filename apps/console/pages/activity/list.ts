import { z } from 'zod';
import { type ActivityPage, listActivity, type Place } from '#domain/activity/search.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { time } from '../../components/time.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import {
  type Cursor,
  cursorField,
  cursorText,
  type FilterQuery,
  filterFields,
  isFiltered,
  queryOf,
  readFilter,
} from './filter.ts';
import { filterForm } from './filter-form.ts';
import { activityTable } from './lines.ts';

const linesPerPage = 50;

/** The log, newest first, by filter, a page at a time in both directions. */
export const listRoutes = [
  member.view({
    name: 'listActivity',
    path: '/activity',
    permission: 'org.activity.read',
    query: z.object({ ...filterFields, at: cursorField }),
    async show(visit, { at, ...query }) {
      const found = await findPage(visit, query, at);
      const stopped = found.isWhole ? null : at?.direction === 'newer' ? found.newer : found.older;
      return page({
        title: 'Activity',
        body: html`
          ${await filterForm(visit, query)}
          ${found.entries.length === 0 ? nothingFound(visit, query, found) : activityTable(visit, found.entries, 'Lines of the activity log')}
          ${stopped === null ? nothing : goOn(visit, query, at?.direction ?? 'older', stopped)}
          ${pager({
            newer: stopped === found.newer ? null : cursorText('newer', found.newer),
            older: stopped === found.older ? null : cursorText('older', found.older),
            href: (cursor) => visit.at(`/activity${queryOf(query, { at: cursor })}`),
            ...(at === null ? {} : { firstHref: visit.at(`/activity${queryOf(query)}`) }),
          })}
          ${found.entries.length === 0 ? nothing : download(visit, query)}`,
      });
    },
  }),
];

/** A page back that turns out to be the first is drawn as the first, whole. */
async function findPage(visit: MemberVisit, query: FilterQuery, cursor: Cursor | null): Promise<ActivityPage> {
  const find = (from: Cursor | null) =>
    listActivity(visit.console.em, visit.organization.organizationId, readFilter(query), from, linesPerPage);
  const found = await find(cursor);
  const isShortFirst = cursor?.direction === 'newer' && found.newer === null && found.entries.length < linesPerPage;
  return isShortFirst ? find(null) : found;
}

/** Said when a page ends because enough was looked through, and not because enough was found. */
function goOn(visit: MemberVisit, query: FilterQuery, direction: Cursor['direction'], place: Place): Html {
  const href = visit.at(`/activity${queryOf(query, { at: cursorText(direction, place) ?? '' })}`);
  return notice(
    'info',
    html`Searched ${direction === 'older' ? 'back' : 'forward'} to ${time(place.at)}: few lines are all of that at once. <a href="${href}">Search further</a>`,
  );
}

function nothingFound(visit: MemberVisit, query: FilterQuery, { isWhole }: ActivityPage): Html {
  if (!isWhole) return nothing;
  if (isFiltered(query))
    return emptyState({
      title: 'No line fits',
      body: 'Nothing in the log is all of that. Take a part of the filter away, or a longer time.',
      action: linkButton(visit.at('/activity'), 'Show everything', 'secondary'),
    });
  return emptyState({
    title: 'Nothing has happened yet',
    body: 'Every call with an API key, answered or refused, and everything that people do in this console will stand here.',
  });
}

const download = (visit: MemberVisit, query: FilterQuery): Html =>
  html`<p class="actions">${linkButton(visit.at(`/activity/csv${queryOf(query)}`), isFiltered(query) ? 'Download these lines (CSV)' : 'Download the log (CSV)', 'secondary')}
    <span class="quiet">Every line that fits, not this page alone; times in UTC. That it was downloaded goes into the log.</span></p>`;
