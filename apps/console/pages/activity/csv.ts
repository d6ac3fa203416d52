import { Readable } from 'node:stream';
import { z } from 'zod';
import { byteOrderMark, csvLine } from '#domain/activity/csv.ts';
import { eachActivityEntry, recordDownload } from '#domain/activity/download.ts';
import type { ActivityEntry } from '#domain/activity/search.ts';
import { tellWhat, tellWho, textOf } from '#domain/activity/sentences.ts';
import { download } from '../../web/answer.ts';
import { member } from '../../web/route.ts';
import { filterFields, readFilter } from './filter.ts';

/** A file of any filter, as long as it may be. */
export const csvRoutes = [
  member.view({
    name: 'downloadActivity',
    path: '/activity/csv',
    permission: 'org.activity.read',
    query: z.object(filterFields),
    show(visit, query) {
      const { em, now } = visit.console;
      const { organizationId } = visit.organization;
      const filter = readFilter(query);
      return download({
        fileName: `activity-${now().toISOString().slice(0, 10)}.csv`,
        type: 'text/csv; charset=utf-8; header=present',
        async open() {
          await recordDownload(em, { organizationId, ...visit.by, filter });
          const batches = eachActivityEntry(em, organizationId, filter);
          // Before the answer begins, so that a database that is away is said by a page and not by
          // half a file.
          const first = await batches.next();
          return Readable.from(csvText(first, batches), { objectMode: false });
        },
      });
    },
  }),
];

const linesPerPiece = 200;

const headings = [
  'time_utc',
  'who',
  'what',
  'action',
  'status',
  'code',
  'times',
  'address',
  'person_id',
  'person',
  'key_id',
  'key_name',
  'key_hint',
  'detail',
  'line_id',
];

/**
 * The file, a batch of lines at a time; the next is asked for when the browser has taken this one.
 */
async function* csvText(
  first: IteratorResult<ActivityEntry[], void>,
  rest: AsyncGenerator<ActivityEntry[], void>,
): AsyncGenerator<string> {
  yield byteOrderMark + csvLine(headings);
  if (first.done) return;
  yield* pieces(first.value);
  for await (const batch of rest) yield* pieces(batch);
}

/** A batch in pieces of about 50 KB, so that the progress of a slow browser shows. */
function* pieces(batch: ActivityEntry[]): Generator<string> {
  for (let from = 0; from < batch.length; from += linesPerPiece)
    yield batch
      .slice(from, from + linesPerPiece)
      .map(entryLine)
      .join('');
}

function entryLine(entry: ActivityEntry): string {
  const { at, action, status, code, count, address, personId, personName, keyId, keyLabel, keyHint, detail, id } =
    entry;
  return csvLine([
    new Date(at).toISOString(),
    textOf(tellWho(entry)),
    textOf(tellWhat(entry)),
    action,
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
