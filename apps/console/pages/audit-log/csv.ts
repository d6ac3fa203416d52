import { Readable } from 'node:stream';
import { z } from 'zod';
import { getResult } from '#domain/audit-log/results.ts';
import type { AuditEntry } from '#domain/audit-log/search.ts';
import { describeAction, describeActor, formatSentence } from '../../components/action-sentences.ts';
import { filterQuery } from '../../components/list-filter.ts';
import { byteOrderMark, csvLine } from '../../web/csv.ts';
import { formatLocalTime } from '../../web/date-time.ts';
import { download, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { eachAuditEntry, recordDownload } from './download.ts';
import { filterFields, filterProblems, getReader, readFilter } from './filter.ts';

/** Downloads the filtered log as CSV, of any length. */
export const csvRoutes = [
  member.view({
    name: 'downloadAuditLog',
    path: '/audit-log/csv',
    permission: 'org.activity.read',
    query: z.object(filterFields),
    async show(visit, query) {
      // The page explains what is wrong with the filter; a file could not.
      if (Object.keys(filterProblems(query)).length > 0) return redirect(visit.at(`/audit-log${filterQuery(query)}`));
      const { database, now } = visit.console;
      const { organizationId } = visit;
      const filter = await readFilter(visit, query);
      return download({
        fileName: `audit-log-${now().toISOString().slice(0, 10)}.csv`,
        type: 'text/csv; charset=utf-8; header=present',
        async open() {
          await recordDownload(database, { organizationId, ...visit.by, filter });
          const batches = eachAuditEntry(database, organizationId, filter, getReader(visit));
          // Fetched before the response starts, so that an unavailable database shows an error
          // page.
          const first = await batches.next();
          return Readable.from(csvText(first, batches, visit.organization.timeZone), { objectMode: false });
        },
      });
    },
  }),
];

const entriesPerPiece = 50;

const headings = [
  'time_utc',
  'time_local',
  'actor',
  'description',
  'action',
  'result',
  'status',
  'code',
  'count',
  'ip_address',
  'person_id',
  'person_name',
  'key_id',
  'key_name',
  'key_prefix',
  'details',
  'id',
];

/** Yields the file in batches. The next is fetched when the browser has received this one. */
async function* csvText(
  first: IteratorResult<AuditEntry[], void>,
  rest: AsyncGenerator<AuditEntry[], void>,
  timeZone: string | null,
): AsyncGenerator<string> {
  yield byteOrderMark + csvLine(headings);
  if (first.done) return;
  yield* pieces(first.value, timeZone);
  for await (const batch of rest) yield* pieces(batch, timeZone);
}

/** Splits a batch into pieces of about 12 KB. Other requests are answered between them. */
function* pieces(batch: AuditEntry[], timeZone: string | null): Generator<string> {
  for (let from = 0; from < batch.length; from += entriesPerPiece)
    yield batch
      .slice(from, from + entriesPerPiece)
      .map((entry) => entryCsv(entry, timeZone))
      .join('');
}

/** @param timeZone - of the local time; null: the organization has none, and it is UTC. */
function entryCsv(entry: AuditEntry, timeZone: string | null): string {
  const { at, action, status, code, count, address, personId, personName, keyId, keyLabel, keyHint, detail, id } =
    entry;
  return csvLine([
    new Date(at).toISOString(),
    formatLocalTime(new Date(at), timeZone ?? 'UTC'),
    formatSentence(describeActor(entry)),
    formatSentence(describeAction(entry)),
    action,
    getResult(entry),
    status,
    code,
    count,
    address,
    personId,
    personName,
    keyId,
    keyLabel,
    keyHint,
    detail === null ? null : JSON.stringify(detail),
    id,
  ]);
}
