import type { ActivityEntry } from '#domain/activity/search.ts';
import { describeAction, describeActor, type Sentence } from '#domain/activity/sentences.ts';
import { displayName } from '../../components/display-name.ts';
import { badge } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Returns a sentence as HTML, with its names isolated. */
export const sentenceHtml = (sentence: Sentence): Html =>
  html`${sentence.map((part) => (typeof part === 'string' ? part : displayName(part.name)))}`;

/** Returns the result of an entry: the status of a read, or that an action completed. */
export function resultBadge({ status, code }: Pick<ActivityEntry, 'status' | 'code'>): Html {
  if (status === null) return badge('plain', 'Completed');
  return status < 400 ? badge('good', `${status}`) : badge('bad', `${status} ${code ?? ''}`.trim());
}

/** Draws entries of the log, each linked to its details. */
export const activityTable = (visit: MemberVisit, entries: readonly ActivityEntry[], caption: string): Html =>
  table<ActivityEntry>({
    caption,
    columns: [
      {
        heading: 'Event',
        main: true,
        cell: (entry) =>
          html`<a href="${visit.at(`/activity/${entry.id}`)}">${sentenceHtml(describeAction(entry))}</a>`,
      },
      { heading: 'Actor', cell: (entry) => sentenceHtml(describeActor(entry)) },
      { heading: 'Result', onPhone: 'beside', cell: resultBadge },
      {
        heading: 'IP address',
        onPhone: 'hidden',
        cell: ({ address }) => address ?? html`<span class="quiet">—</span>`,
      },
      { heading: 'Time', cell: ({ at }) => time(at) },
    ],
    rows: entries,
  });
