import { getResult } from '#domain/audit-log/results.ts';
import type { AuditEntry } from '#domain/audit-log/search.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import {
  describeAction,
  describeActor,
  type Name,
  type ObjectRef,
  type Sentence,
} from '../../components/action-sentences.ts';
import { badge } from '../../components/notice.ts';
import { resultKinds } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPath } from '../members/path.ts';

/** Returns a sentence as HTML: names isolated, and linked to what the visitor may see. */
export const sentenceHtml = (visit: MemberVisit, sentence: Sentence): Html =>
  html`<span class="sentence">${sentence.map((part) =>
    typeof part === 'string' ? part : nameHtml(visit, part),
  )}</span>`;

function nameHtml(visit: MemberVisit, { name, object }: Name): Html {
  const path = object === undefined ? null : objectPath(visit, object);
  return path === null ? displayName(name) : html`<a href="${path}">${displayName(name)}</a>`;
}

/** Returns the path of an object's page; null when the visitor's roles do not show it. */
function objectPath(visit: MemberVisit, { kind, id, of }: ObjectRef): string | null {
  switch (kind) {
    case 'key':
      return visit.may('org.keys.manage') ? visit.at(`/keys/${id}`) : null;
    case 'webhook':
      return visit.may('org.webhooks.manage') ? visit.at(`/webhooks/${id}`) : null;
    case 'delivery':
      return visit.may('org.webhooks.manage') ? visit.at(`/webhooks/${of}/deliveries/${id}`) : null;
    case 'redelivery':
      return visit.may('org.webhooks.manage') ? visit.at(`/webhooks/${of}/redeliveries/${id}`) : null;
    case 'member':
      return visit.may('org.members.read') ? memberPath(visit, id) : null;
    case 'role':
      return visit.may('org.roles.read') ? visit.at(`/members/roles/${id}`) : null;
    case 'client':
      return visit.may('org.clients.read') ? visit.at(`/clients/${id}`) : null;
  }
}

/** Returns the result of an entry, with the status and code of a read that did not succeed. */
export function resultBadge(entry: AuditEntry): Html {
  const { status, code } = entry;
  const result = getResult(entry);
  const response = status === null || status < 400 ? nothing : html` <small class="quiet">${status} ${code}</small>`;
  return html`${badge(resultKinds[result], result)}${response}`;
}

/** Describes an entry. A description without links to objects is itself a link to the details. */
function eventCell(visit: MemberVisit, entry: AuditEntry): Html {
  const action = describeAction(entry);
  const text = sentenceHtml(visit, action);
  const hasObject = action.some((part) => typeof part !== 'string' && part.object !== undefined);
  return hasObject ? text : html`<a href="${visit.at(`/audit-log/${entry.id}`)}">${text}</a>`;
}

/** Renders entries of the log, each with its objects and its details linked. */
export const auditLogTable = (visit: MemberVisit, entries: readonly AuditEntry[], caption: string): Html =>
  table<AuditEntry>({
    caption,
    columns: [
      { heading: 'Event', main: true, cell: (entry) => eventCell(visit, entry) },
      { heading: 'Actor', whenNarrow: 'start', cell: (entry) => sentenceHtml(visit, describeActor(entry)) },
      {
        heading: 'Result',
        whenNarrow: 'beside',
        // Most actions of the log completed, so a narrow list omits the word.
        cell: (entry) =>
          getResult(entry) === 'Completed' ? html`<span class="quiet wide-only">Completed</span>` : resultBadge(entry),
      },
      {
        heading: 'IP address',
        whenNarrow: 'hidden',
        cell: ({ address }) => address ?? html`<span class="quiet">–</span>`,
      },
      {
        heading: 'Time',
        whenNarrow: 'end',
        cell: ({ id, at }) => {
          const more = html`<span class="visually-hidden"> Event details</span>`;
          return html`<a href="${visit.at(`/audit-log/${id}`)}">${time(at)}${more}</a>`;
        },
      },
    ],
    rows: entries,
  });
