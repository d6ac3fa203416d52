import type { ActivityEntry } from '#domain/activity/search.ts';
import { type Sentence, tellWhat, tellWho } from '#domain/activity/sentences.ts';
import { displayName } from '../../components/display-name.ts';
import { badge } from '../../components/notice.ts';
import { table } from '../../components/table.ts';
import { time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** A sentence on a page: names stand apart, whatever direction their script has. */
export const sentenceHtml = (sentence: Sentence): Html =>
  html`${sentence.map((part) => (typeof part === 'string' ? part : displayName(part.name)))}`;

/** What came of it: the status of a read, or that it was done. */
export function resultBadge({ status, code }: Pick<ActivityEntry, 'status' | 'code'>): Html {
  if (status === null) return badge('plain', 'done');
  return status < 400 ? badge('good', `${status}`) : badge('bad', `${status} ${code ?? ''}`.trim());
}

/** Lines of the log, each a link to all that is stored of it. */
export const activityTable = (visit: MemberVisit, entries: readonly ActivityEntry[], caption: string): Html =>
  table<ActivityEntry>({
    caption,
    columns: [
      {
        heading: 'What',
        main: true,
        cell: (entry) => html`<a href="${visit.at(`/activity/${entry.id}`)}">${sentenceHtml(tellWhat(entry))}</a>`,
      },
      { heading: 'Who', cell: (entry) => sentenceHtml(tellWho(entry)) },
      { heading: 'Result', cell: resultBadge },
      { heading: 'From', cell: ({ address }) => address ?? html`<span class="quiet">—</span>` },
      { heading: 'When', cell: ({ at }) => time(at) },
    ],
    rows: entries,
  });
